// Validators for command-line arguments; each error message explains the mistake.
#ifndef LOTUS_TOOL_CLI_ARGUMENTS_HPP
#define LOTUS_TOOL_CLI_ARGUMENTS_HPP

#include <CLI/CLI.hpp>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Accepts a number that has only digits and is at least `least`.
CLI::Validator whole_number(std::size_t least);

/// Rejects an empty argument. A script passes an empty argument, for example, if one of its
/// variables is not set.
CLI::Validator not_empty();

/// The words that an option accepts, each with the number that the word stands for.
using word_choices = std::vector<std::pair<std::string, int>>;
CLI::Validator one_of_words(word_choices words);

/// Accepts only the given words. The error message for another word suggests a similar one.
/// @param other_words  further words, each with the one that it stands for and, in a transform(),
/// is
///   replaced by.
CLI::Validator known_word(std::vector<std::string> words,
                          std::map<std::string, std::string> other_words = {});

/// Accepts the words for an enumeration's values: `one_of<form>({{"json", form::json}, …})`.
template <class Enum>
CLI::Validator one_of(std::initializer_list<std::pair<const char*, Enum>> words) {
  word_choices choices;
  for (const auto& [word, value] : words) choices.emplace_back(word, static_cast<int>(value));
  return one_of_words(std::move(choices));
}

/// Converts the text of a number above 0, such as "2". A unit may follow it: "2x" is accepted if
/// `unit` is "x". Throws usage_error if the text is anything else.
double positive_number(const std::string& text, std::string_view unit, const std::string& option);

/// Returns the command of `app` with the name `word`. If `app` has no such command, throws
/// usage_error, whose message suggests a similar command.
const CLI::App& command_named(const CLI::App& app, const std::string& word);

/// Throws usage_error with a suggestion if the user gave an option that the called command does not
/// have. Call it after CLI11 has parsed the command line.
void check_options(const CLI::App& app);

/// Throws usage_error if the first word of the command line is not a command of `app`. If the
/// command has subcommands, also throws usage_error if the second word is none of them.
void check_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_ARGUMENTS_HPP
