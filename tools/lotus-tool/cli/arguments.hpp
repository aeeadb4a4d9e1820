// Kinds of arguments, checked so that every mistake gets a line that names it.
#ifndef LOTUS_TOOL_CLI_ARGUMENTS_HPP
#define LOTUS_TOOL_CLI_ARGUMENTS_HPP

#include <CLI/CLI.hpp>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// For a number of things: digits only, at least `least`.
CLI::Validator whole_number(std::size_t least);

/// For what must not be "", as a variable is that a script has not set.
CLI::Validator not_empty();

/// Every word that may be given, with the number that stands for it.
using word_choices = std::vector<std::pair<std::string, int>>;
CLI::Validator one_of_words(word_choices words);

/// For an enumeration: `one_of<form>({{"json", form::json}, …})`.
template <class Enum>
CLI::Validator one_of(std::initializer_list<std::pair<const char*, Enum>> words) {
  word_choices choices;
  for (const auto& [word, value] : words) choices.emplace_back(word, static_cast<int>(value));
  return one_of_words(std::move(choices));
}

/// The command of `app` that is called so. Throws usage_error, with what may have been meant.
const CLI::App& command_named(const CLI::App& app, const std::string& word);

/// Throws usage_error when the command that was called has no such option as was given, with what
/// may have been meant. To be called when the arguments were read, and not all of them were taken.
void check_options(const CLI::App& app);

/// Throws usage_error when the first word among the arguments is no command of `app`, or of the
/// command before it.
void check_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ARGUMENTS_HPP
