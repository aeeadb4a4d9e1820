#include "log/log_line.hpp"

namespace lotus::tool::internal {

const char* classify_batch(log_line& line) noexcept {
  for (const batch_kind& k : batch_kinds) {
    if (line.name.substr(0, k.line_prefix.size()) != k.line_prefix) continue;
    const std::string_view rest = line.name.substr(k.line_prefix.size());
    if (rest.empty()) return "a batch record without a batch number";
    // A name such as SBatchWaiter has no '_' after "SBatchWait": it is the operation BatchWaiter
    // and not a malformed record of a wait.
    if (rest.front() != '_') continue;
    std::uint64_t number = 0;
    std::size_t digits = 0;
    const char* const end = rest.data() + rest.size();
    if (read_digits(rest.data() + 1, end, number, digits) != end || digits == 0) {
      return "the batch number is not a whole number";
    }
    if (digits > 18) return "the batch number is out of range";
    line.kind = k.kind;
    line.batch = static_cast<std::int64_t>(number);
    return nullptr;
  }
  return nullptr;
}

namespace {

/// Reads a number of ns from `field` into `value`. If `field` is not a valid number, returns the
/// one of the three given texts that describes the error; otherwise nullptr.
const char* blame_number(std::string_view field, const char* negative, const char* not_a_number,
                         const char* too_large, std::uint64_t& value) noexcept {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  std::size_t digits = 0;
  const char* const end = field.data() + field.size();
  if (!field.empty() && field.front() == '-') {
    const char* const rest = field.data() + 1;
    return read_digits(rest, end, value, digits) == end && digits > 0 ? negative : not_a_number;
  }
  if (read_digits(field.data(), end, value, digits) != end || digits == 0) return not_a_number;
  return digits > 19 || value > INT64_MAX ? too_large : nullptr;
}

}  // namespace

const char* blame(std::string_view text) noexcept {
  if (text.size() > max_line_bytes) return "the line is longer than 1 MiB";
  const std::size_t first = text.find(',');
  if (first == std::string_view::npos) return "one field, expected NAME,START,DURATION";
  const std::size_t second = text.find(',', first + 1);
  if (second == std::string_view::npos) return "two fields, expected NAME,START,DURATION";
  if (text.find(',', second + 1) != std::string_view::npos) {
    return "more than three fields, expected NAME,START,DURATION";
  }
  if (first == 0) return "the name is empty";
  if (text.front() != 'S') return "the name does not begin with S";
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  const char* what =
      blame_number(text.substr(first + 1, second - first - 1), "START is negative",
                   "START is not a whole number of nanoseconds", "START is out of range", start);
  if (what == nullptr) {
    what = blame_number(text.substr(second + 1), "DURATION is negative",
                        "DURATION is not a whole number of nanoseconds", "DURATION is out of range",
                        duration);
  }
  if (what != nullptr) return what;
  if (duration > INT64_MAX - start) return "START + DURATION is out of range";
  log_line line;
  line.name = text.substr(0, first);
  what = classify_batch(line);
  return what != nullptr ? what : "the name contains a newline";
}

}  // namespace lotus::tool::internal

namespace lotus::tool {

bool parse_negative_duration(std::string_view text, log_line& line) {
  const std::size_t sign = text.rfind(",-");
  if (sign == std::string_view::npos || text.size() > max_line_bytes) return false;
  log_line number;  // the duration without its sign, as the start of a line of its own
  const std::string positive = "S," + std::string(text.substr(sign + 2)) + ",0";
  if (parse_line(positive, number) != nullptr) return false;
  // The digit before the end of `zero` is the duration 0; the line keeps the name in `text`.
  const std::string zero = std::string(text.substr(0, sign)) + ",0";
  if (parse_line(zero, line) != nullptr || number.start_ns > line.start_ns) return false;
  line.name = text.substr(0, line.name.size());
  line.duration_ns = -number.start_ns;
  return true;
}

void append_text(const log_line& line, std::string& to) {
  to.append(line.name).append(1, ',').append(std::to_string(line.start_ns));
  to.append(1, ',').append(std::to_string(line.duration_ns)).append(1, '\n');
}

}  // namespace lotus::tool
