// The command line's own description, as a manual page and as shell completion, so that neither
// can differ from what the program understands.
#ifndef LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
#define LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP

#include <CLI/App.hpp>
#include <string>

namespace lotus::tool {

/// A manual page in man(7)'s macros.
std::string man_page(const CLI::App& app);

/// A script that makes a shell complete the command line.
/// @param shell  "bash", "zsh" or "fish"; usage_error for any other.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_SELF_DESCRIPTION_HPP
