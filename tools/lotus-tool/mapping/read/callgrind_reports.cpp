#include "mapping/read/callgrind_reports.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::string& word : split_fields(trimmed(text), ' ')) {
    if (!word.empty()) out.push_back(std::move(word));
  }
  return out;
}

bool begins_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// Resolves a name in callgrind's compressed form: "(12) name" defines the number 12, and "(12)"
/// then stands for this name.
const std::string& compressed_name(std::map<std::string, std::string>& known,
                                   std::string_view text) {
  if (text.empty() || text.front() != '(') return known[std::string(text)] = std::string(text);
  const std::size_t close = text.find(')');
  std::string& name = known[std::string(text.substr(0, close))];
  const std::string_view given =
      close == std::string_view::npos ? std::string_view{} : trimmed(text.substr(close + 1));
  if (!given.empty()) name = given;
  return name;
}

/// Reads the lines of one callgrind.out file.
class profile_reader {
 public:
  profile_reader(std::string path, std::string_view text) : path_(std::move(path)), lines_(text) {}

  std::vector<callgrind_profile> all() {
    std::string_view line;
    while (lines_.next(line)) read(line);
    finish_part();
    return std::move(parts_);
  }

 private:
  void read(std::string_view line) {
    constexpr std::string_view trigger = "desc: Trigger: Client Request: ";
    if (line.empty() || line.front() == '#') return;
    if (begins_with(line, "part:")) return finish_part();
    if (begins_with(line, trigger)) {
      part_.operation = trimmed(line.substr(trigger.size()));
    } else if (begins_with(line, "positions:")) {
      positions_ = words(line.substr(10)).size();
    } else if (begins_with(line, "events:")) {
      part_.events = words(line.substr(7));
    } else if (begins_with(line, "ob=")) {
      module_ = compressed_name(modules_, line.substr(3));
    } else if (begins_with(line, "fn=")) {
      function_ = compressed_name(functions_, line.substr(3));
    } else if (begins_with(line, "cfn=")) {
      compressed_name(functions_, line.substr(4));
    } else if (begins_with(line, "cob=")) {
      compressed_name(modules_, line.substr(4));
    } else if (begins_with(line, "calls=")) {
      callee_follows_ = true;  // the next line has the called function's cost; add() skips it
    } else if (line.find_first_of("0123456789+-*") == 0) {
      add(line);
    }
  }

  void add(std::string_view line) {
    if (std::exchange(callee_follows_, false)) return;
    const std::vector<std::string> fields = words(line);
    if (part_.events.empty() || fields.size() > positions_ + part_.events.size()) {
      throw input_error(at_line(path_, lines_.number(), "more numbers than events"));
    }
    auto& counts = part_.functions[{function_, module_}];
    counts.resize(part_.events.size());
    for (std::size_t i = positions_; i < fields.size(); ++i) {
      std::uint64_t value = 0;
      const char* const end = fields[i].data() + fields[i].size();
      const auto [at, error] = std::from_chars(fields[i].data(), end, value);
      if (error != std::errc{} || at != end) {
        throw input_error(at_line(path_, lines_.number(), "'" + fields[i] + "' is not a count"));
      }
      counts[i - positions_] += value;
    }
  }

  void finish_part() {
    if (!part_.functions.empty()) parts_.push_back(part_);
    part_.functions.clear();
    part_.operation.clear();
  }

  std::string path_;
  text_lines lines_;
  std::map<std::string, std::string> modules_;
  std::map<std::string, std::string> functions_;
  std::string module_;
  std::string function_;
  std::size_t positions_ = 1;
  bool callee_follows_ = false;
  callgrind_profile part_;
  std::vector<callgrind_profile> parts_;
};

/// Removes a count such as "36,000,015 (54.55%)", or a ".", from the front of `line`. Returns false
/// if `line` begins with neither.
bool take_count(std::string_view& line, std::uint64_t& value) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = line.find_first_not_of("0123456789,.");
  if (end == 0 || end == std::string_view::npos) return false;
  const std::string_view digits = line.substr(0, end);
  constexpr double most = 1e18;  // a larger number cannot be a count
  value = static_cast<std::uint64_t>(std::clamp(number_in(digits).value_or(0), 0.0, most));
  line.remove_prefix(end);
  const std::size_t next = line.find_first_not_of(' ');
  if (next != std::string_view::npos && line[next] == '(' &&
      line.substr(0, 12).find("%)") != std::string_view::npos) {
    line.remove_prefix(line.find(')') + 1);
  }
  return true;
}

/// Reads the output of callgrind_annotate: a header, totals, and the table of functions, which ends
/// with a blank line. Ignores the annotated source code after the table.
class annotate_reader {
 public:
  annotate_reader(std::string path, std::string_view text) : path_(std::move(path)), lines_(text) {}

  callgrind_profile read() {
    std::string_view line;
    while (!in_table_ && lines_.next(line)) read_head(line);
    if (!in_table_) throw input_error(path_ + ": contains no table of functions");
    while (lines_.next(line)) {
      const bool row = !trimmed(line).empty() && !begins_with(line, "----");
      if (row) add(line);
      if (!row && !profile_.functions.empty()) break;
    }
    refuse_inclusive();
    find_modules();
    return std::move(profile_);
  }

 private:
  using counts = std::vector<std::uint64_t>;

  void read_head(std::string_view line) {
    constexpr std::string_view shown = "Events shown:";
    constexpr std::string_view trigger = "Trigger: Client Request: ";
    if (begins_with(line, shown)) {
      profile_.events = words(line.substr(shown.size()));
    } else if (begins_with(line, trigger)) {
      profile_.operation = trimmed(line.substr(trigger.size()));
    } else if (ends_with(line, "PROGRAM TOTALS")) {
      totals_ = take_counts(line);
    } else {
      in_table_ = ends_with(line, "file:function");
    }
  }

  /// Removes the counts of a row from the front of `line`; there is one count for each event.
  counts take_counts(std::string_view& line) const {
    counts values(profile_.events.size());
    for (std::uint64_t& value : values) {
      if (!take_count(line, value)) {
        throw input_error(at_line(path_, lines_.number(), "fewer counts than events"));
      }
    }
    return values;
  }

  static void add_to(counts& sums, const counts& more) {
    sums.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
  }

  void add(std::string_view line) {
    const counts values = take_counts(line);
    line = trimmed(line);
    for (const std::string_view relation : {"< ", "> ", "* "}) {
      if (begins_with(line, relation)) {
        throw input_error(
            at_line(path_, lines_.number(),
                    "callers and called functions are in it; make it without --tree"));
      }
    }
    add_to(sums_, values);
    add_to(profile_.functions[place_of(line)], values);
  }

  /// Splits "file:function [object]" into function and module; without an object, module is empty.
  static std::pair<std::string, std::string> place_of(std::string_view text) {
    std::string module;
    const std::size_t bracket = text.rfind(" [");
    if (bracket != std::string_view::npos && text.back() == ']' && text[bracket + 2] == '/') {
      module = text.substr(bracket + 2, text.size() - bracket - 3);
      text = text.substr(0, bracket);
    }
    const std::size_t colon = text.find(':');
    return {std::string(colon == std::string_view::npos ? text : text.substr(colon + 1)), module};
  }

  /// Throws an error if the counts of functions include the functions that they call. In this case,
  /// the sum of the counts exceeds the program's total, because every caller repeats them.
  void refuse_inclusive() const {
    for (std::size_t i = 0; i < totals_.size() && i < sums_.size(); ++i) {
      if (totals_[i] > 0 && sums_[i] > totals_[i]) {
        throw input_error(path_ +
                          ": its counts include what functions call; make it without "
                          "--inclusive=yes");
      }
    }
  }

  /// Fills in missing modules. A function may have a row without a module for code that comes from
  /// a header; this row gets the module of the function's other rows.
  void find_modules() {
    const auto rows = std::exchange(profile_.functions, {});
    for (const auto& [key, values] : rows) {
      const auto& [function, module] = key;
      add_to(profile_.functions[{function, module.empty() ? only_module(rows, function) : module}],
             values);
    }
  }

  static std::string only_module(const decltype(callgrind_profile::functions)& rows,
                                 const std::string& function) {
    std::string found;
    for (auto at = rows.lower_bound({function, ""}); at != rows.end(); ++at) {
      const auto& [known, module] = at->first;
      if (known != function) break;
      if (module.empty()) continue;
      if (!found.empty()) return unknown_module;
      found = module;
    }
    return found.empty() ? unknown_module : found;
  }

  static constexpr const char* unknown_module = "[unknown]";

  std::string path_;
  text_lines lines_;
  callgrind_profile profile_;
  counts totals_;
  counts sums_;
  bool in_table_ = false;
};

}  // namespace

bool looks_like_callgrind(std::string_view text) {
  return begins_with(text, "# callgrind format") ||
         (begins_with(text, "version:") &&
          text.substr(0, 200).find("creator: callgrind") != std::string_view::npos);
}

std::vector<callgrind_profile> read_callgrind(const std::string& path, std::string_view text) {
  return profile_reader(path, text).all();
}

bool looks_like_callgrind_annotate(std::string_view text) {
  return text.substr(0, 1024).find("(creator: callgrind") != std::string_view::npos;
}

callgrind_profile read_callgrind_annotate(const std::string& path, std::string_view text) {
  return annotate_reader(path, text).read();
}

}  // namespace lotus::tool
