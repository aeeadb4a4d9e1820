// Defines the type of the work that a command does.
#ifndef LOTUS_TOOL_CLI_ACTION_HPP
#define LOTUS_TOOL_CLI_ACTION_HPP

#include <functional>
#include <ostream>

namespace lotus::tool {

/// The function that executes the called command and returns its exit status. Parsing the arguments
/// stores the function in a variable, which must outlive the CLI::App.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ACTION_HPP
