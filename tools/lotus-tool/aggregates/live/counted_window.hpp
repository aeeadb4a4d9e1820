// Computes which aggregated calls a process made in the last seconds, from readings of its sums.
#ifndef LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP
#define LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP

#include <cstdint>
#include <deque>
#include <functional>
#include <lotus/recovery/dead_ring.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// The calls of one aggregated operation in one loader, by all threads of a process. Times are in
/// ticks.
struct counted_calls {
  std::uint64_t count = 0;
  std::uint64_t total_ticks = 0;
  std::uint64_t self_ticks = 0;
  /// Pairs of a bucket of durations and the number of calls in it, sorted by bucket.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;

  void add(const counted_calls& other);
  /// Returns the calls that this object contains in addition to those in `before`, which was read
  /// earlier. A number that decreased counts as 0.
  counted_calls since(const counted_calls& before) const;
  bool operator==(const counted_calls& other) const {
    return count == other.count && total_ticks == other.total_ticks && buckets == other.buckets;
  }
};

/// Aggregated calls by name. The key is the loader's folder in the run directory ("" for the
/// default loader) and the decoded name (like all names in logs, it begins with an S).
using counted_by_name = std::map<std::pair<std::string, std::string>, counted_calls>;

/// Stores readings of a process's aggregates, which are sums over all calls since the recording
/// began. The difference between two readings gives the calls between them. Not thread-safe.
class counted_window {
 public:
  struct interval {
    counted_by_name calls;
    std::int64_t ns = 0;  ///< length of this interval
  };

  explicit counted_window(std::int64_t window_ns) : window_ns_(window_ns) {}

  /// Adds a reading: the sums of all calls from `began_ns`, when the recording began, to `now_ns`.
  /// Both times are in ns since 1970.
  void add(std::int64_t began_ns, std::int64_t now_ns, counted_by_name sums);

  /// Returns the calls between the last reading at or before `begin_ns` (or the first reading, if
  /// all are later) and the newest reading. Returns nullopt if there are fewer than two readings;
  /// equal readings count as one. The beginning of a recording counts as a reading if it is in the
  /// window.
  std::optional<interval> since(std::int64_t begin_ns) const;
  /// Whether there is only one reading, so that a second one is needed to compute a difference.
  bool needs_second_reading() const {
    return counts_at_.size() == 1 && !counts_at_.front().sums.empty();
  }
  /// Returns the time of the last reading; nullopt if there was none.
  std::optional<std::int64_t> last_ns() const {
    return counts_at_.empty() ? std::nullopt : std::optional(counts_at_.back().until_ns);
  }

 private:
  struct counts_at {
    std::int64_t at_ns = 0;
    std::int64_t until_ns = 0;  ///< time of the last reading with the same sums
    counted_by_name sums;
  };

  std::int64_t window_ns_;
  // In order of time. Readings are at least an eighth of the window apart, except for the last one.
  std::deque<counts_at> counts_at_;
};

/// Looks up names in a ring file.
struct ring_names {
  /// Returns "S<name>," for a name's id.
  std::function<std::string_view(std::uint32_t)> line_start;
  /// Returns the folder of a loader for the loader's id.
  std::function<std::string(std::uint32_t)> folder;
};

/// Returns the sums of all threads since the recording began; no sums if a block cannot be read.
/// The process continues at the same time: a call that ends during the reading may be included in
/// one sum and missing in another.
counted_by_name read_counts(const detail::dead_ring_file& file, const ring_names& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP
