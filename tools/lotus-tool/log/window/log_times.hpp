// Defines the interface that maps times to positions in a log.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lotus::tool {

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

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
