// Generates the manual page and the shell completions from the definitions of the command line, so
// that they cannot differ from what the program accepts.
#ifndef LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
#define LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP

#include <CLI/App.hpp>
#include <string>

namespace lotus::tool {

/// Returns a manual page in the format of man(7).
std::string man_page(const CLI::App& app);

/// Returns a script with which a shell completes the arguments of lotus-tool.
/// @param shell  "bash", "zsh" or "fish"; any other text throws usage_error.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
