// What the program will do.
#ifndef LOTUS_TOOL_CLI_ACTION_HPP
#define LOTUS_TOOL_CLI_ACTION_HPP

#include <functional>
#include <ostream>

namespace lotus::tool {

/// What the command that is called will do, set while the arguments are read; whoever holds it
/// must outlive the CLI::App. Returns the exit status.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ACTION_HPP
