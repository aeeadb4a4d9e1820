// Declares what headers need to declare description_of().
#pragma once

namespace lotus::tool {

template <class T>
class description;

}  // namespace lotus::tool
