// Finds the bounds of queues from the number of units in them.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// The begin of a thread's work on a unit.
struct begin_of_unit {
  std::int64_t time_ns = 0;
  bool was_idle = false;  ///< for longer than it needs to continue with the next unit
};

struct bound_seen {
  std::size_t units = 0;  ///< begun and not taken: the bound if `held`, else the maximum seen
  bool held = false;      ///< threads were idle because of the bound
};

class bound_finder {
 public:
  /// @param begins  of one stage in one epoch, in the order of dispatch.
  /// @param takes   when the next stage, or the consumer, took units; in order of time.
  void add(const std::vector<begin_of_unit>& begins, const std::vector<std::int64_t>& takes);

  /// There was a bound if threads that had been idle mostly began with the same number of units
  /// ahead. The maximum seen may be one too high, because the record that a unit was taken may come
  /// a moment late.
  bound_seen found() const;

 private:
  std::vector<std::size_t>
      after_idling_;  // number of begins after idling, by number of units ahead
  std::size_t most_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
