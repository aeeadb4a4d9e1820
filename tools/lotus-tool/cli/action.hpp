// Defines `action`, the type of the function that executes a command of lotus-tool.
#ifndef LOTUS_TOOL_CLI_ACTION_HPP
#define LOTUS_TOOL_CLI_ACTION_HPP

#include <functional>
#include <ostream>

namespace lotus::tool {

/// A function that executes a command of lotus-tool and returns its exit status. When CLI11 parses
/// the command line, the command that the user called stores its function in a variable. This
/// variable must outlive the CLI::App object, which refers to it.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ACTION_HPP
