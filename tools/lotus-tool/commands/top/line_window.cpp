#include "commands/top/line_window.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "log/window/line_times.hpp"

namespace lotus::tool {
namespace {

/// Returns the line that begins at `at`, without its line end.
std::string_view line_at(std::string_view lines, std::size_t at) {
  return lines.substr(at, std::min(lines.find('\n', at), lines.size()) - at);
}

/// Returns the end time of the first line from `at` on that is a valid record, and sets `at` to the
/// beginning of this line.
std::optional<std::int64_t> end_from(std::string_view lines, std::size_t& at, bool is_side_log) {
  while (at < lines.size()) {
    const std::string_view line = line_at(lines, at);
    if (const auto times = times_of_line(line, is_side_log)) return times->end_ns;
    at = std::min(at + line.size() + 1, lines.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> last_end(std::string_view lines, bool is_side_log) {
  constexpr int max_skipped = 8;  // maximum number of damaged lines that are skipped
  for (int i = 0; i < max_skipped && !lines.empty(); ++i) {
    lines.remove_suffix(1);
    const std::size_t before = lines.rfind('\n');
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (const auto times = times_of_line(lines.substr(begin), is_side_log)) return times->end_ns;
    lines = lines.substr(0, begin);
  }
  return std::nullopt;
}

std::size_t first_since(std::string_view lines, std::int64_t begin_ns, bool is_side_log) {
  // Binary search. Both `low` and `high` are beginnings of lines. All records before `low` ended
  // before `begin_ns`; all records from `high` on ended at `begin_ns` or later.
  std::size_t low = 0;
  std::size_t high = lines.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const std::size_t line_begin = middle == 0 ? 0 : lines.rfind('\n', middle - 1) + 1;
    std::size_t at = line_begin;
    const auto end = end_from(lines, at, is_side_log);
    if (end && *end < begin_ns) {
      low = std::min(at + line_at(lines, at).size() + 1, lines.size());
    } else {
      high = line_begin;
    }
  }
  std::size_t record = low;
  return end_from(lines, record, is_side_log) ? low : lines.size();  // no valid line follows
}

void line_window::add(std::string lines) {
  if (lines.empty()) return;
  last_ns_ = std::max(last_ns_, last_end(lines, is_side_log_));
  bytes_ += lines.size();
  parts_.push_back(std::move(lines));
}

void line_window::trim(std::int64_t begin_ns) {
  while (!parts_.empty()) {
    const std::string_view oldest = std::string_view(parts_.front()).substr(gone_);
    const std::size_t older = first_since(oldest, begin_ns, is_side_log_);
    bytes_ -= older;
    gone_ += older;
    if (older < oldest.size()) return;
    parts_.pop_front();
    gone_ = 0;
  }
}

std::string line_window::text() const {
  std::string all;
  all.reserve(bytes_ + gone_);
  for (const std::string& part : parts_) all += part;
  all.erase(0, gone_);
  return all;
}

}  // namespace lotus::tool
