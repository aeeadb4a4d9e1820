#include "mapping/read/callgrind_reports.hpp"

#include <cstddef>

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
      if (!read_whole(fields[i], value)) {
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

}  // namespace

bool looks_like_callgrind(std::string_view text) {
  return begins_with(text, "# callgrind format") ||
         (begins_with(text, "version:") &&
          text.substr(0, 200).find("creator: callgrind") != std::string_view::npos);
}

std::vector<callgrind_profile> read_callgrind(const std::string& path, std::string_view text) {
  return profile_reader(path, text).all();
}

}  // namespace lotus::tool
