// How many calls of an operation are served at once, as far as a recording shows it.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// A call of an operation, or the whole of a stage's work on one unit. Waiting for a CPU is cut off
/// at its start: it is another matter.
struct operation_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t file = 0;  ///< of its thread
  std::uint32_t work = 0;  ///< place in recorded_pipeline::works
  double cpu_ns = 0;
};

/// What a recording shows of one operation.
struct served_at_once {
  std::size_t most_inside = 0;  ///< calls that were open at the same time
  /// Numbers of servers, up to most_inside, that the recording does not contradict; in order. With
  /// most_inside among them there may be any number more.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
  /// Calls that found none open, and how long they took in the mean, and all others; within 1.645
  /// standard errors of the first. 0 where there are none.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double beside_ns = 0;
  /// Between the ends of calls, one of which was waiting or served all the time; mean.
  double gap_ns = 0;

  bool may_be(std::size_t servers) const {
    return std::find(plausible.begin(), plausible.end(), servers) != plausible.end();
  }
  /// Whether nothing limits it, as far as is known.
  bool may_be_free() const { return may_be(most_inside); }
  /// Whether calls took longer beside others, beyond what chance may do.
  bool is_slower_beside_others() const { return alone_ns > 0 && beside_ns > 1.1 * alone_high_ns; }
};

/// For each number of servers: takes the service times that it implies (a call is served from when
/// it came, or the server that it got was given up, to its end) and the times between calls;
/// simulates the closed loop (Lazowska et al., Quantitative System Performance, ch. 6) and compares
/// eight statistics of the recording with the simulated ones: a number stays plausible unless one
/// of them is far off. Where service times hardly vary, only the right number makes them tight, and
/// that decides; what was on the CPU at the same time was served at the same time; and calls that
/// wait for nobody take as long beside others as alone.
/// @param all  in order of their ends. Deterministic.
served_at_once find_served_at_once(const std::vector<operation_call>& all);

/// What of each call's time it was served, if so many were at once. Times in ns.
/// @param calls  in order of their ends.
std::vector<double> service_times(const std::vector<operation_call>& calls, std::size_t servers);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
