// Validators for arguments; each error message names the mistake.
#ifndef LOTUS_TOOL_CLI_ARGUMENTS_HPP
#define LOTUS_TOOL_CLI_ARGUMENTS_HPP

#include <CLI/CLI.hpp>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Accepts a count: digits only, at least `least`.
CLI::Validator whole_number(std::size_t least);

/// Rejects an empty argument, which a script passes if a variable is not set.
CLI::Validator not_empty();

/// The accepted words, each with the number that it stands for.
using word_choices = std::vector<std::pair<std::string, int>>;
CLI::Validator one_of_words(word_choices words);

/// Accepts the words of an enumeration: `one_of<form>({{"json", form::json}, …})`.
template <class Enum>
CLI::Validator one_of(std::initializer_list<std::pair<const char*, Enum>> words) {
  word_choices choices;
  for (const auto& [word, value] : words) choices.emplace_back(word, static_cast<int>(value));
  return one_of_words(std::move(choices));
}

/// Returns the command `word` of `app`. Throws usage_error, with a similar name if there is one.
const CLI::App& command_named(const CLI::App& app, const std::string& word);

/// Throws usage_error if the called command does not have an option that was given, with a similar
/// option if there is one. Call it after parsing, if arguments remain.
void check_options(const CLI::App& app);

/// Throws usage_error if the first word among the arguments is not a command of `app`, or the next
/// word is not a command of that command.
void check_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ARGUMENTS_HPP
