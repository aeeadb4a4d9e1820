// Generates a manual page and shell completions from the command line's own definitions, so that
// they cannot differ from what the program accepts.
#ifndef LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
#define LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP

#include <CLI/App.hpp>
#include <string>

namespace lotus::tool {

/// A manual page in the macros of man(7).
std::string man_page(const CLI::App& app);

/// A script that completes the command line in a shell.
/// @param shell  "bash", "zsh" or "fish"; throws usage_error for any other.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
