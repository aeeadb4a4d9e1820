#include "log/window/text_times.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <lotus/recovery/ring_copy.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/found_file.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"
#include "log/window/time_window.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {
namespace {

/// Calls `on_times(position in lines, times)` for each record in `lines`, until a call returns
/// false.
template <class OnTimes>
void for_each_times(std::string_view lines, bool is_side, OnTimes&& on_times) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::optional<line_times> times = times_of_line(lines.substr(at, end - at), is_side);
    if (times && !on_times(at, *times)) return;
    at = end + 1;
  }
}

/// Finds positions in a text log by time. It uses binary search, which works because the lines are
/// sorted by end time.
class text_times final : public log_times {
 public:
  explicit text_times(const log_file& file)
      : bytes_(file.bytes), is_side_(file.role == file_role::side) {
    if (bytes_ > 0) descriptor_ = open_found(file.path);
  }
  ~text_times() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  text_times(const text_times&) = delete;
  text_times& operator=(const text_times&) = delete;

  seen_times seen() const override {
    seen_times all;
    for (std::uint64_t n = 0; n <= samples; ++n) {
      const std::uint64_t at = bytes_ <= sample_bytes ? 0 : (bytes_ - sample_bytes) / samples * n;
      const std::uint64_t last = bytes_ <= sample_bytes ? 0 : bytes_ - sample_bytes;
      all.add(look_at_lines(lines_at(n == samples ? last : at, sample_bytes).text, is_side_));
      if (bytes_ <= sample_bytes) break;
    }
    return all;
  }

  std::int64_t last_ns() const override {
    const std::uint64_t from = bytes_ - std::min(bytes_, sample_bytes);
    return look_at_lines(lines_at(from, sample_bytes).text, is_side_).last_ns;
  }

  std::uint64_t begin_for(std::int64_t time_ns) const override { return halve(time_ns).low; }
  std::uint64_t end_for(std::int64_t time_ns) const override {
    return line_at(halve(time_ns + 1).high);
  }

  std::optional<std::int64_t> time_at(std::uint64_t byte) const override {
    const std::optional<placed> record = record_at(byte);
    return record ? std::optional(record->end_ns) : std::nullopt;
  }

 private:
  // seen() reads lines at this many positions, which are distributed evenly over the file, and
  // lines at its end.
  static constexpr std::uint64_t samples = 16;
  static constexpr std::uint64_t sample_bytes = std::uint64_t{32} << 10U;
  static constexpr std::uint64_t step_bytes = std::uint64_t{4} << 10U;

  struct some_lines {
    std::uint64_t first = 0;  // position of `text` in the file
    std::string text;
  };
  struct placed {
    std::uint64_t byte;
    std::int64_t end_ns;
  };
  struct range {
    std::uint64_t low;
    std::uint64_t high;
  };

  /// Returns the complete lines within the `most` bytes that follow the position `byte`; no lines
  /// if the first line is longer than that.
  some_lines lines_at(std::uint64_t byte, std::uint64_t most) const {
    some_lines some;
    // Also read the byte before the position `byte`: if it is a line end, a line begins at `byte`.
    const std::uint64_t from = byte == 0 ? 0 : byte - 1;
    some.text.resize(std::min(most + (byte - from), bytes_ - std::min(from, bytes_)));
    if (!lotus::detail::read_at(descriptor_, some.text.data(), some.text.size(), from)) return {};
    if (from + some.text.size() < bytes_) some.text.resize(some.text.rfind('\n') + 1);
    const std::size_t line_start = byte == 0 ? 0 : some.text.find('\n') + 1;
    if (byte != 0 && line_start == 0) return {};
    some.text.erase(0, line_start);
    some.first = from + line_start;
    return some;
  }

  /// Returns the first record at or after position `byte` that has an end time. Skips records that
  /// have only a start time, because lines are sorted by end time.
  std::optional<placed> record_at(std::uint64_t byte) const {
    std::optional<placed> found;
    for (std::uint64_t most = step_bytes; !found && byte < bytes_; most *= 8) {
      const some_lines some = lines_at(byte, most);
      for_each_times(some.text, is_side_, [&](std::size_t at, const line_times& times) {
        if (times.in_order) found = placed{some.first + at, times.end_ns};
        return !found;
      });
      if (byte + most >= bytes_) break;
    }
    return found;
  }

  /// Returns the position of the first line that begins at or after position `byte`.
  std::uint64_t line_at(std::uint64_t byte) const {
    for (std::uint64_t most = step_bytes; byte + most < bytes_; most *= 8) {
      const some_lines some = lines_at(byte, most);
      if (!some.text.empty()) return some.first;
    }
    return byte < bytes_ ? lines_at(byte, bytes_ - byte).first : bytes_;
  }

  /// Returns a range of positions that contains the first record that ended at `time_ns` or later.
  /// `low` is the beginning of a line: all records before it ended before `time_ns`. All records at
  /// or after `high` ended at `time_ns` or later.
  range halve(std::int64_t time_ns) const {
    range left{0, bytes_};
    while (left.high - left.low > step_bytes) {
      const std::uint64_t middle = left.low + (left.high - left.low) / 2;
      const std::optional<placed> record = record_at(middle);
      if (!record || record->byte >= left.high || record->end_ns >= time_ns) {
        left.high = middle;
      } else {
        left.low = record->byte;
      }
    }
    return left;
  }

  std::uint64_t bytes_;
  bool is_side_;
  int descriptor_ = -1;
};

}  // namespace

seen_times look_at_lines(std::string_view lines, bool is_side) {
  seen_times seen;
  std::int64_t last_ns = INT64_MIN;
  for_each_times(lines, is_side, [&](std::size_t, const line_times& times) {
    if (times.of_run) {
      seen.first_ns = std::min(seen.first_ns, times.start_ns);
      seen.last_ns = std::max(seen.last_ns, times.end_ns);
    }
    seen.longest_ns = std::max(seen.longest_ns, times.end_ns - times.start_ns);
    if (!times.in_order) return true;
    if (times.end_ns < last_ns) seen.back_ns = std::max(seen.back_ns, last_ns - times.end_ns);
    last_ns = std::max(last_ns, times.end_ns);
    return true;
  });
  return seen;
}

std::unique_ptr<log_times> times_of_text(const log_file& file) {
  return std::make_unique<text_times>(file);
}

std::optional<line_times> times_of_line(std::string_view line, bool is_side) {
  if (!is_side) {
    log_line record;
    if (parse_line(line, record) != nullptr) return std::nullopt;
    return line_times{record.start_ns, record.end_ns()};
  }
  side_line record;
  if (parse_line(line, record) != nullptr) return std::nullopt;
  const bool begins =
      lotus::detail::kind_of(record.kind).drawing == lotus::detail::record_drawing::ahead;
  return line_times{record.time_ns, record.end_ns(), !begins, record.kind != event_kind::off_cpu};
}

}  // namespace lotus::tool
