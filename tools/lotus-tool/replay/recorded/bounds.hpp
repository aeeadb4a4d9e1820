// Bounds of queues, found by what lay in them.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// A thread began with a unit.
struct begin_of_unit {
  std::int64_t time_ns = 0;
  bool was_idle = false;  ///< for longer than it takes to go on
};

struct bound_seen {
  std::size_t units = 0;  ///< begun and not taken: where it held the bound, else the most seen
  bool held = false;      ///< threads were idle because of it
};

class bound_finder {
 public:
  /// @param begins  of one stage in one epoch, in the order in which units were given out.
  /// @param takes   when the next one, or the consumer, took units; in order of time.
  void add(const std::vector<begin_of_unit>& begins, const std::vector<std::int64_t>& takes);

  /// A bound held where threads that were idle mostly began with the same number of units ahead: a
  /// record of who took one may come a moment late, so the most that was seen may be one too many.
  bound_seen found() const;

 private:
  std::vector<std::size_t> after_idling_;  // how many there were, by number of units ahead
  std::size_t most_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_BOUNDS_HPP
