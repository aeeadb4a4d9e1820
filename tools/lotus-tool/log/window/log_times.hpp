// Where in a log which time stands.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lotus::tool {

/// What was seen of a log's times, without all of it being read.
struct seen_times {
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start
  std::int64_t last_ns = INT64_MIN;   ///< the latest end
  std::int64_t longest_ns = 0;        ///< that a record lasted
  std::int64_t back_ns = 0;  ///< by so much a record ended before one that stands before it

  void add(const seen_times& other) noexcept {
    first_ns = std::min(first_ns, other.first_ns);
    last_ns = std::max(last_ns, other.last_ns);
    longest_ns = std::max(longest_ns, other.longest_ns);
    back_ns = std::max(back_ns, other.back_ns);
  }
};

/// The times of what a log has on disk, without its older parts.
class log_times {
 public:
  log_times() = default;
  log_times(const log_times&) = delete;
  log_times& operator=(const log_times&) = delete;
  virtual ~log_times() = default;

  virtual seen_times seen() const = 0;
  /// Where to begin to read for all that ended at that time or later, if it stands in the order of
  /// its ends.
  virtual std::uint64_t begin_for(std::int64_t time_ns) const = 0;
  /// Where to end for all that ended up to then.
  virtual std::uint64_t end_for(std::int64_t time_ns) const = 0;
  /// When what stands at a byte or behind it ended first, if anything does.
  virtual std::optional<std::int64_t> time_at(std::uint64_t byte) const = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_TIMES_HPP
