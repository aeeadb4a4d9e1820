#include "cli/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/errors.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/help.hpp"

namespace lotus::tool {
namespace {

[[noreturn]] void unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::string meant = did_you_mean(word, names);
  throw usage_error("'" + word + "' is not a command; " +
                    (meant.empty() ? "the commands are " + joined(names, ", ") : meant));
}

void find_commands_with(const CLI::App& app, const std::string& option, const std::string& before,
                        std::vector<std::string>& found) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string words = before + command->get_name();
    const std::vector<std::string> known = option_words(*command);
    if (std::find(known.begin(), known.end(), option) != known.end()) {
      found.push_back('\'' + words + '\'');
    }
    find_commands_with(*command, option, words + ' ', found);
  }
}

/// Returns the end of an error message about an option that the called command does not have: ",
/// but of 'diagnose'" names the commands that have the option. Returns "" if no command or more
/// than three commands have it.
std::string commands_with(const CLI::App& app, const std::string& option) {
  constexpr std::size_t max_named = 3;
  std::vector<std::string> found;
  find_commands_with(app, option, "", found);
  if (found.empty() || found.size() > max_named) return {};
  return ", but of " + enumerated(found, " and ");
}

/// Returns the error message for a word that an option does not accept.
std::string none_of(const std::string& text, const std::vector<std::string>& known) {
  const std::string meant = did_you_mean(text, known);
  return "'" + text + "' is not one of " + joined(known, ", ") +
         (meant.empty() ? "" : "; " + meant);
}

/// Throws usage_error if lotus-tool itself has no such option. Without this check, CLI11 would say
/// that a command is missing.
void check_option(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> known = option_words(app);
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::string meant = did_you_mean(word, known);
  throw usage_error("'" + word + "' is not an option of 'lotus-tool'; " +
                    (meant.empty() ? "see 'lotus-tool --help'" : meant));
}

}  // namespace

CLI::Validator whole_number(std::size_t least) {
  const auto check = [least](std::string& text) -> std::string {
    std::size_t value = 0;
    if (read_whole(text, value) && value >= least) return {};
    return "'" + text + "' is not a whole number of at least " + std::to_string(least);
  };
  return {check, ""};
}

CLI::Validator not_empty() {
  return {[](std::string& text) -> std::string { return text.empty() ? "is empty" : ""; }, ""};
}

CLI::Validator one_of_words(word_choices words) {
  const auto choose = [words = std::move(words)](std::string& text) -> std::string {
    std::vector<std::string> known;
    for (const auto& [word, value] : words) {
      if (text == word) {
        text = std::to_string(value);
        return {};
      }
      known.push_back(word);
    }
    return none_of(text, known);
  };
  return {choose, ""};
}

CLI::Validator known_word(std::vector<std::string> words,
                          std::map<std::string, std::string> other_words) {
  const auto check = [words = std::move(words),
                      others = std::move(other_words)](std::string& text) -> std::string {
    const auto other = others.find(text);
    if (other != others.end()) text = other->second;
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    std::vector<std::string> known = words;
    for (const auto& [word, meant] : others) known.push_back(word);
    return none_of(text, known);
  };
  return {check, ""};
}

double positive_number(const std::string& text, std::string_view unit, const std::string& option) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string_view rest = std::string_view(text).substr(used);
  if (used == 0 || !(rest.empty() || rest == unit) || !std::isfinite(value) || value <= 0) {
    throw usage_error(option + ": expected a number above 0, such as 2" + std::string(unit) +
                      ", not " + text);
  }
  return value;
}

const CLI::App& command_named(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == word) return *command;
  }
  unknown_command(app, word);
}

void check_options(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string command;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().back();
    command += (command.empty() ? "" : " ") + at->get_name();
  }
  for (const std::string& word : at->remaining()) {
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    std::string error = '\'' + name;
    error.append("' is not an option of '").append(command).append("'");
    const std::string meant = did_you_mean(name, option_words(*at));
    if (!meant.empty()) throw usage_error(error.append("; ").append(meant));
    error.append(commands_with(app, name)).append("; see 'lotus-tool ").append(command);
    throw usage_error(error.append(" --help'"));
  }
}

void check_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && !at->get_subcommands(nullptr).empty(); ++i) {
    const std::string word = argv[i];
    if (word.size() > 1 && word.front() == '-' && at == &app) check_option(app, word);
    if (word.empty() || word.front() == '-') continue;
    at = &command_named(*at, word);
  }
}

}  // namespace lotus::tool
