// What a process counts and does not record, over the last seconds.
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

/// Calls of one name of a loader, by all threads of a process; times in ticks of its clock.
struct counted_calls {
  std::uint64_t count = 0;
  std::uint64_t total_ticks = 0;
  std::uint64_t self_ticks = 0;
  /// A bucket of durations, and how many calls fell into it; rising.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;

  void add(const counted_calls& other);
  /// Those that came since; saturates where some figure went back.
  counted_calls since(const counted_calls& before) const;
  bool operator==(const counted_calls& other) const {
    return count == other.count && total_ticks == other.total_ticks && buckets == other.buckets;
  }
};

/// By the folder of the loader in the run's, "" of the default one, and the name with its S,
/// decoded.
using counted_by_name = std::map<std::pair<std::string, std::string>, counted_calls>;

/// The sums of a process at several looks, of which two tell what came in between. Not thread-safe.
class counted_window {
 public:
  struct stretch {
    counted_by_name calls;
    std::int64_t ns = 0;  ///< how long it was
  };

  explicit counted_window(std::int64_t window_ns) : window_ns_(window_ns) {}

  /// So much the process had counted at `now_ns`, since `begun_ns` (both since 1970).
  void add(std::int64_t begun_ns, std::int64_t now_ns, counted_by_name sums);

  /// What came since that time, or since a look that is nearest before. None where only one look
  /// is known, and the process had begun earlier.
  std::optional<stretch> since(std::int64_t begin_ns) const;
  /// Whether there is something of which one look does not tell enough.
  bool wants_another_look() const { return looks_.size() == 1 && !looks_.front().sums.empty(); }
  /// When it was looked at last, if it ever was.
  std::optional<std::int64_t> last_ns() const {
    return looks_.empty() ? std::nullopt : std::optional(looks_.back().until_ns);
  }

 private:
  struct one_look {
    std::int64_t at_ns = 0;
    std::int64_t until_ns = 0;  ///< a later look, which showed the same
    counted_by_name sums;
  };

  std::int64_t window_ns_;
  std::deque<one_look> looks_;  // each an eighth of the window behind the one before, but the last
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_COUNTED_WINDOW_HPP
