// Defines the type of the work that a command does.
#ifndef LOTUS_TOOL_CLI_ACTION_HPP
#define LOTUS_TOOL_CLI_ACTION_HPP

#include <functional>
#include <ostream>

namespace lotus::tool {

/// The function that executes the called command and returns the exit status. It is set while the
/// arguments are parsed; the variable that it is stored in must outlive the CLI::App.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ACTION_HPP
