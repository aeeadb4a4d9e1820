// Computes what a process counted during the last seconds without recording it.
#ifndef LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP
#define LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// The calls of one name in one loader, by all threads of a process; times are in ticks of its
/// clock.
struct counted_calls {
  std::uint64_t count = 0;
  std::uint64_t total_ticks = 0;
  std::uint64_t self_ticks = 0;
  /// Pairs of a bucket of durations and the number of calls in it, sorted by bucket.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;

  void add(const counted_calls& other);
  /// The calls that were added after `before`; a number that decreased counts as 0.
  counted_calls since(const counted_calls& before) const;
  bool operator==(const counted_calls& other) const {
    return count == other.count && total_ticks == other.total_ticks && buckets == other.buckets;
  }
};

/// The key is the loader's folder inside the run's folder ("" for the default loader) and the
/// decoded name, including its S.
using counted_by_name = std::map<std::pair<std::string, std::string>, counted_calls>;

/// The sums of a process at several times; two of them give the calls in between. Not thread-safe.
class counted_window {
 public:
  struct stretch {
    counted_by_name calls;
    std::int64_t ns = 0;  ///< the length of this interval
  };

  explicit counted_window(std::int64_t window_ns) : window_ns_(window_ns) {}

  /// Adds the sums that a process has reached at `now_ns`. Its recording began at `begun_ns`; both
  /// times are since 1970.
  void add(std::int64_t begun_ns, std::int64_t now_ns, counted_by_name sums);

  /// The calls since `begin_ns`, or since the last reading of the sums before it. Returns nullopt
  /// if there was only one reading and the process began before the window.
  std::optional<stretch> since(std::int64_t begin_ns) const;
  /// Whether the sums were read only once, so that a second reading is needed for a difference.
  bool wants_another_look() const { return looks_.size() == 1 && !looks_.front().sums.empty(); }
  /// The time of the last reading; nullopt if there was none.
  std::optional<std::int64_t> last_ns() const {
    return looks_.empty() ? std::nullopt : std::optional(looks_.back().until_ns);
  }

 private:
  struct one_look {
    std::int64_t at_ns = 0;
    std::int64_t until_ns = 0;  ///< time of the last reading with the same sums
    counted_by_name sums;
  };

  std::int64_t window_ns_;
  std::deque<one_look> looks_;  // an eighth of the window apart, except for the last one
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP
