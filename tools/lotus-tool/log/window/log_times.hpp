// Maps times to positions in a log.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lotus::tool {

/// What is known about a log's times without reading all of it.
struct seen_times {
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start
  std::int64_t last_ns = INT64_MIN;   ///< the latest end
  std::int64_t longest_ns = 0;        ///< the longest duration of a record
  std::int64_t back_ns = 0;  ///< maximum time by which a record ended before a record above it

  void add(const seen_times& other) noexcept {
    first_ns = std::min(first_ns, other.first_ns);
    last_ns = std::max(last_ns, other.last_ns);
    longest_ns = std::max(longest_ns, other.longest_ns);
    back_ns = std::max(back_ns, other.back_ns);
  }
};

/// The times of a log's bytes on disk, without its older parts.
class log_times {
 public:
  log_times() = default;
  log_times(const log_times&) = delete;
  log_times& operator=(const log_times&) = delete;
  virtual ~log_times() = default;

  virtual seen_times seen() const = 0;
  /// Where to begin reading to get all records that ended at this time or later, if they are sorted
  /// by their ends.
  virtual std::uint64_t begin_for(std::int64_t time_ns) const = 0;
  /// Where to end reading to get all records that ended up to this time.
  virtual std::uint64_t end_for(std::int64_t time_ns) const = 0;
  /// End time of the first record at or after a byte, if there is one.
  virtual std::optional<std::int64_t> time_at(std::uint64_t byte) const = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
