#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

/// How many letters must be put in, left out or changed to make one word of the other
/// (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void unknown_command(const CLI::App& app, const std::string& word) {
  std::string names;
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names += (names.empty() ? "" : ", ") + command->get_name();
    const std::size_t apart = distance(word, command->get_name());
    if (apart < least) nearest = command->get_name();
    least = std::min(least, apart);
  }
  throw usage_error("'" + word + "' is no command; " +
                    (least <= 2 ? "did you mean '" + nearest + "'?" : "there are " + names));
}

}  // namespace

CLI::Validator whole_number(std::size_t least) {
  const auto check = [least](std::string& text) -> std::string {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc{} && end == text.data() + text.size() && value >= least;
    if (good) return {};
    return "'" + text + "' is no whole number of at least " + std::to_string(least);
  };
  return {check, ""};
}

CLI::Validator not_empty() {
  return {[](std::string& text) -> std::string { return text.empty() ? "is empty" : ""; }, ""};
}

CLI::Validator one_of_words(word_choices words) {
  const auto choose = [words = std::move(words)](std::string& text) -> std::string {
    std::string all;
    for (const auto& [word, value] : words) {
      if (text == word) {
        text = std::to_string(value);
        return {};
      }
      all += (all.empty() ? "" : ", ") + word;
    }
    return "'" + text + "' is none of " + all;
  };
  return {choose, ""};
}

void check_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && !at->get_subcommands(nullptr).empty(); ++i) {
    const std::string word = argv[i];
    if (word.empty() || word.front() == '-') continue;
    const std::vector<const CLI::App*> commands = at->get_subcommands(nullptr);
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
    if (found == commands.end()) unknown_command(*at, word);
    at = *found;
  }
}

}  // namespace lotus::tool
