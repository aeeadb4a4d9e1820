// Runs the command line of lotus-tool.
#ifndef LOTUS_TOOL_CLI_CLI_HPP
#define LOTUS_TOOL_CLI_CLI_HPP

#include <ostream>
#include <string>
#include <vector>

#include "base/command_runner.hpp"

namespace lotus::tool {

/// Runs lotus-tool with the arguments of main(). Returns the exit status: 0 success, 1 bad input, 2
/// usage error. Never throws: every error becomes one line on `err`.
/// @param terminal  descriptor of a terminal for the progress bar; if negative, no bar is shown.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
            int terminal = -1);

/// Like run_cli(), but returns the output instead of writing it to streams. Commands call this if
/// they need the output of another command.
command_output run_in_process(const std::vector<std::string>& arguments);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_CLI_HPP
