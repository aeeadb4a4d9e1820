// The command line.
#ifndef LOTUS_TOOL_CLI_CLI_HPP
#define LOTUS_TOOL_CLI_CLI_HPP

#include <ostream>

namespace lotus::tool {

/// Runs `lotus-tool` with the arguments of main(). Returns the exit status: 0 success, 1 bad input,
/// 2 usage error. Throws nothing: every error is one line on `err`.
/// @param terminal  descriptor of a terminal for the progress bar; negative: no progress bar.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
            int terminal = -1);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_CLI_HPP
