// Texts about lotus-tool itself, made from the definitions of the command line: --help, the manual
// page and completions.
#ifndef LOTUS_TOOL_CLI_HELP_HPP
#define LOTUS_TOOL_CLI_HELP_HPP

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/reading_options.hpp"

namespace lotus::tool {

/// Returns a command's usage, description, options, examples and exit statuses, in 80 columns.
/// @param words  the command as the user types it, such as "lotus-tool map join".
std::string help_text(const CLI::App& app, const std::string& words);

/// Returns the end of a command's help, in 80 columns: examples, explanations, exit statuses.
std::string closing_text(const CLI::App& app);

/// Returns the names of a command's options, such as "--from" and "-o".
std::vector<std::string> option_words(const CLI::App& app);

/// Adds the command `help`, which prints the help of another command. If the user calls `help`, a
/// function that prints the help is stored in `chosen`. `app` must outlive `chosen`, because this
/// function refers to `app`.
void add_help(CLI::App& app, action& chosen);

/// Groups the commands by what they are for. Call it when all have been added.
void group_commands(CLI::App& app);

/// Adds the commands `completion` and `man`. `app` must outlive `chosen`.
void add_self_description(CLI::App& app, action& chosen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_HELP_HPP
