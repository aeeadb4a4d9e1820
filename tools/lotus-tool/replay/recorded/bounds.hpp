// Estimates how many batches or items a queue can hold, from the units that it held in the run.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// The start of a thread's work on a unit (a batch or an item).
struct begin_of_unit {
  std::int64_t time_ns = 0;
  /// Whether the thread was idle before, for longer than the usual time between two units.
  bool was_idle = false;
};

struct bound_seen {
  /// Number of units that were begun and that the next stage or the consumer had not begun or
  /// received yet: the limit if `held` is true, otherwise the maximum that occurred.
  std::size_t units = 0;
  bool held = false;  ///< whether threads had to wait because the queue was full
};

class bound_finder {
 public:
  /// Adds the events of one epoch.
  /// @param begins  when a stage began to work on its units, in the order of dispatch.
  /// @param takes   when the next stage began, or the consumer received, each unit; sorted.
  /// @param late_ns  a unit that was recorded as taken at most this long after the start of other
  ///   work may have caused that start: a consumer often wakes a worker before it records the take.
  void add(const std::vector<begin_of_unit>& begins, const std::vector<std::int64_t>& takes,
           double late_ns);

  /// Returns how many units the queue can hold. There is a limit if idle threads mostly began to
  /// work again at the same number of units in the queue. If there is none, the maximum may be one
  /// too high, because a unit may leave the queue a moment before this is recorded.
  bound_seen found() const;

 private:
  // For each number of units in the queue: how often an idle thread began to work.
  std::vector<std::size_t> after_idling_;
  std::size_t most_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
