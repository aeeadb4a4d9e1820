// Finds out whether a queue of a recorded pipeline has a limit.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BOUND_FINDER_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BOUND_FINDER_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// The moment when a thread began to work on a unit (a batch or an item).
struct begin_of_unit {
  std::int64_t time_ns = 0;
  /// Whether the thread was idle before, for longer than threads usually need between two units.
  bool was_idle = false;
};

struct bound_seen {
  /// The size of the queue: the number of units that a stage has begun and that the next stage or
  /// the consumer has not. If `held` is true, this is the limit; otherwise it is the maximum that
  /// occurred.
  std::size_t units = 0;
  bool held = false;        ///< whether threads had to wait because the queue was full
  bool held_often = false;  ///< whether they had to before most units
};

class bound_finder {
 public:
  /// Adds the events of one epoch.
  /// @param begins   when a stage began to work on each of its units, in the order of dispatch.
  /// @param takes    when the next stage began each unit, or the consumer received it; sorted.
  /// @param late_ns  tolerance for `takes`. A consumer often wakes a worker before it records that
  ///   it received a batch, so a unit may have left the queue up to this time before the recorded
  ///   time.
  void add(const std::vector<begin_of_unit>& begins, const std::vector<std::int64_t>& takes,
           double late_ns);

  /// Returns how many units the queue can hold. The queue has a limit if it mostly held the same
  /// number of units when an idle thread began to work again. If the queue has no limit, the
  /// returned maximum may be one too high, because a unit may leave the queue a moment before this
  /// is recorded.
  bound_seen found() const;

 private:
  // Element n: how often the queue held n units just after a thread had begun to work.
  struct begin_counts {
    std::size_t all = 0;
    std::size_t after_idling = 0;
  };
  std::vector<begin_counts> held_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BOUND_FINDER_HPP
