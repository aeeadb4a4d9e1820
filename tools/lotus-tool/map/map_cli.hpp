// The arguments of lotus-tool map.
#ifndef LOTUS_TOOL_MAP_CLI_HPP
#define LOTUS_TOOL_MAP_CLI_HPP

#include <functional>
#include <ostream>

namespace CLI {
class App;
}

namespace lotus::tool {

/// Adds `map` and its commands to the program; the one that is called puts what it will do into
/// `chosen`, which must outlive `app`.
void add_map(CLI::App& app, std::function<int(std::ostream& out, std::ostream& err)>& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAP_CLI_HPP
