#include "commands/tune/knobs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/errors.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_configurations = 4096;
constexpr std::string_view stage_begin = "stage:";

/// Names that programs often give to a setting, in lower case with '_' for '-'.
struct known_names {
  knob_meaning meaning;
  std::array<std::string_view, 4> names;
};
constexpr known_names all_known_names[] = {
    {knob_meaning::workers, {"workers", "num_workers", "n_workers", "nworkers"}},
    {knob_meaning::prefetch, {"prefetch", "prefetch_factor", "prefetch_depth"}},
    {knob_meaning::order, {"order", "ordered", "in_order", "unordered"}},
    {knob_meaning::batch_size, {"batch", "batch_size", "bs"}},
};

std::string lower(std::string text) {
  for (char& c : text) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

void find_meaning(knob& k) {
  if (k.name.compare(0, stage_begin.size(), stage_begin) == 0) {
    k.meaning = knob_meaning::stage;
    k.stage = k.name.substr(stage_begin.size());
    return;
  }
  const std::string name = lower(k.name);
  for (const auto& [meaning, names] : all_known_names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) k.meaning = meaning;
  }
}

/// Appends the values of one element of a list, such as "8" or "1..16".
void add_values(const std::string& part, const std::string& whole, knob& k) {
  const auto add = [&k](const std::string& value) {
    if (std::find(k.values.begin(), k.values.end(), value) == k.values.end()) {
      k.values.push_back(value);
    }
  };
  const std::size_t dots = part.find("..");
  if (dots == std::string::npos) {
    if (part.empty()) throw usage_error(whole + ": a value is empty");
    return add(part);
  }
  const std::optional<std::size_t> first = number_of(part.substr(0, dots));
  const std::optional<std::size_t> last = number_of(part.substr(dots + 2));
  if (!first || !last || *first > *last || *last - *first >= max_configurations) {
    throw usage_error(whole + ": expected a range of whole numbers such as 1..16, not " + part);
  }
  for (std::size_t value = *first; value <= *last; ++value) add(std::to_string(value));
}

void check_knobs(const std::vector<knob>& knobs, const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    const knob& k = knobs[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (knobs[j].name == k.name) throw usage_error(k.name + " is given twice");
    }
    const bool used = std::any_of(command.begin(), command.end(), [&k](const std::string& word) {
      return word.find('{' + k.name + '}') != std::string::npos;
    });
    if (!k.in_environment && !used) {
      throw usage_error("--set " + k.name + ": the command has no {" + k.name +
                        "}; write it where the value belongs");
    }
  }
}

}  // namespace

std::optional<std::size_t> number_of(const std::string& value) {
  std::size_t number = 0;
  return read_whole(value, number) ? std::optional(number) : std::nullopt;
}

knob parse_knob(const std::string& text, bool in_environment, const std::string& option) {
  const std::string whole = option + ' ' + text;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw usage_error(whole + ": expected NAME=VALUES, such as workers=1..16 or prefetch=1,2,4");
  }
  knob k;
  k.name = text.substr(0, equals);
  k.in_environment = in_environment;
  find_meaning(k);
  std::size_t at = equals + 1;
  while (true) {
    const std::size_t comma = text.find(',', at);
    add_values(text.substr(at, comma - at), whole, k);
    if (comma == std::string::npos) break;
    at = comma + 1;
  }
  return k;
}

search_space::search_space(std::vector<knob> knobs, std::vector<std::string> command,
                           const std::vector<std::pair<std::string, std::string>>& start)
    : knobs_(std::move(knobs)), command_(std::move(command)), start_(knobs_.size()) {
  check_knobs(knobs_, command_);
  if (size() > max_configurations) {
    throw usage_error("more than " + std::to_string(max_configurations) +
                      " configurations; give lists of values, such as workers=1,2,4,8,16");
  }
  for (const auto& [name, value] : start) {
    const auto found = std::find_if(knobs_.begin(), knobs_.end(),
                                    [n = &name](const knob& k) { return k.name == *n; });
    if (found == knobs_.end()) {
      std::vector<std::string> names;
      names.reserve(knobs_.size());
      for (const knob& k : knobs_) names.push_back(k.name);
      const std::string meant = did_you_mean(name, names);
      throw usage_error("--start " + name + ": neither --set nor --env has this name" +
                        (meant.empty() ? "" : "; " + meant));
    }
    const auto at = std::find(found->values.begin(), found->values.end(), value);
    if (at == found->values.end()) {
      std::string why = "--start " + name;
      why.append("=").append(value).append(": not one of the values of ").append(name);
      throw usage_error(why);
    }
    start_[static_cast<std::size_t>(found - knobs_.begin())] =
        static_cast<std::size_t>(at - found->values.begin());
  }
}

std::size_t search_space::size() const noexcept {
  std::size_t count = 1;
  for (const knob& k : knobs_) {
    count = std::min(count * k.values.size(), max_configurations + 1);
  }
  return count;
}

std::vector<configuration> search_space::all() const {
  std::vector<configuration> found;
  configuration at(knobs_.size());
  while (true) {
    found.push_back(at);
    std::size_t k = knobs_.size();
    while (k > 0 && ++at[k - 1] == knobs_[k - 1].values.size()) at[--k] = 0;
    if (k == 0) return found;
  }
}

std::optional<std::size_t> search_space::number(const configuration& at,
                                                knob_meaning meaning) const {
  for (std::size_t k = 0; k < knobs_.size(); ++k) {
    if (knobs_[k].meaning == meaning) return number_of(value(at, k));
  }
  return std::nullopt;
}

std::size_t search_space::threads(const configuration& at) const {
  std::size_t sum = 0;
  for (std::size_t k = 0; k < knobs_.size(); ++k) {
    const bool counts =
        knobs_[k].meaning == knob_meaning::workers || knobs_[k].meaning == knob_meaning::stage;
    if (counts) sum += number_of(value(at, k)).value_or(0);
  }
  return sum;
}

std::vector<std::string> search_space::command(const configuration& at) const {
  std::vector<std::string> words = command_;
  for (std::string& word : words) {
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
      if (!knobs_[k].in_environment)
        word = replaced(word, '{' + knobs_[k].name + '}', value(at, k));
    }
  }
  return words;
}

std::vector<std::pair<std::string, std::string>> search_space::environment(
    const configuration& at) const {
  std::vector<std::pair<std::string, std::string>> variables;
  for (std::size_t k = 0; k < knobs_.size(); ++k) {
    if (knobs_[k].in_environment) variables.emplace_back(knobs_[k].name, value(at, k));
  }
  return variables;
}

std::string search_space::shell_command(const configuration& at) const {
  std::string variables;
  for (const auto& [name, value] : environment(at))
    variables.append(name + '=' + shell_word(value) + ' ');
  return variables + joined(command(at), " ", shell_word);
}

std::string search_space::text(const configuration& at) const {
  std::string all;
  for (std::size_t k = 0; k < knobs_.size(); ++k) {
    if (k > 0) all += ", ";
    all.append(knobs_[k].name).append("=").append(value(at, k));
  }
  return all;
}

}  // namespace lotus::tool
