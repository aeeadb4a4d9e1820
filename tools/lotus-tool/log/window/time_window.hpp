// Defines ranges of time that a command reads from a run.
#ifndef LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lotus::tool {

/// A range of time with inclusive ends, in ns since 1970. If an end is missing, the range extends
/// to the end of the run on that side.
struct time_window {
  std::optional<std::int64_t> from_ns = {};
  std::optional<std::int64_t> to_ns = {};
  /// If set, some records from before this time are missing, because they were deleted to limit the
  /// size of logs.
  std::optional<std::int64_t> whole_from_ns = {};
  /// If set, records that end after this time are not read.
  std::optional<std::int64_t> whole_to_ns = {};

  /// Whether a span overlaps the window, and lies between whole_from_ns and whole_to_ns.
  bool has(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns.value_or(start_ns) && end_ns >= from_ns.value_or(end_ns) &&
           start_ns >= whole_from_ns.value_or(start_ns) && end_ns <= whole_to_ns.value_or(end_ns);
  }
};

/// The time range that is read from a run of which only a part is wanted.
struct read_window {
  /// The wanted part and the margins before and after it.
  time_window read;
  /// Start and end of the whole run, as found in samples of its logs; nullopt: those of the records
  /// that are read.
  std::optional<std::int64_t> run_first_ns = {};
  std::optional<std::int64_t> run_last_ns = {};
};

/// Times of a log in ns, found without reading the whole log.
struct seen_times {
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start of a record
  std::int64_t last_ns = INT64_MIN;   ///< the latest end of a record
  std::int64_t longest_ns = 0;        ///< the longest duration of a record
  /// Maximum time by which a record ends earlier than a record before it in the log.
  std::int64_t back_ns = 0;

  void add(const seen_times& other) noexcept {
    first_ns = std::min(first_ns, other.first_ns);
    last_ns = std::max(last_ns, other.last_ns);
    longest_ns = std::max(longest_ns, other.longest_ns);
    back_ns = std::max(back_ns, other.back_ns);
  }
};

/// Maps times to positions in the file of one log. Older parts of the log, which are in other
/// files, are not searched.
class log_times {
 public:
  log_times() = default;
  log_times(const log_times&) = delete;
  log_times& operator=(const log_times&) = delete;
  virtual ~log_times() = default;

  virtual seen_times seen() const = 0;
  /// Returns the latest end time near the end of the log, where it usually is; INT64_MIN if
  /// unknown.
  virtual std::int64_t last_ns() const = 0;
  /// Returns the position from which the log must be read to get all records that ended at
  /// `time_ns` or later, provided that the records are sorted by end time.
  virtual std::uint64_t begin_for(std::int64_t time_ns) const = 0;
  /// Returns the position up to which the log must be read to get all records that ended at
  /// `time_ns` or earlier.
  virtual std::uint64_t end_for(std::int64_t time_ns) const = 0;
  /// Returns the end time of the first record at or after position `byte`; nullopt if no record
  /// follows.
  virtual std::optional<std::int64_t> time_at(std::uint64_t byte) const = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
