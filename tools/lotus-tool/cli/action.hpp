// Defines `action`, the type of the function that executes a command of lotus-tool.
#ifndef LOTUS_TOOL_CLI_ACTION_HPP
#define LOTUS_TOOL_CLI_ACTION_HPP

#include <functional>
#include <ostream>

namespace lotus::tool {

/// The function that executes a command and returns its exit status. When CLI11 parses the command
/// line, the called command stores its function in a variable. The variable must outlive the
/// CLI::App, which refers to it.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ACTION_HPP
