// Declares what headers need to declare description_of().
#ifndef LOTUS_TOOL_DESCRIBE_DESCRIBED_HPP
#define LOTUS_TOOL_DESCRIBE_DESCRIBED_HPP

namespace lotus::tool {

template <class T>
class description;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_DESCRIBED_HPP
