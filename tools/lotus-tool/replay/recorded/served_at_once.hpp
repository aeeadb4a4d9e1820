// Estimates from a recording how many calls of an operation are served at the same time.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// A call of an operation, or all work of a stage on one unit (batch or item). Time in which the
/// call waited for a CPU is removed by a later start, because it is no wait for a server.
struct operation_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t file = 0;  ///< index of the log of the call's thread
  std::uint32_t work = 0;  ///< index of the work in recorded_pipeline::works
  double cpu_ns = 0;
  double queued_ns = 0;  ///< time in ns during which the call waited for a CPU
};

/// How many calls of one operation are served at the same time, as far as the recording shows it. A
/// call is served while it does not wait for a server, such as a lock or a channel of a device.
struct served_at_once {
  std::size_t max_inside = 0;  ///< the maximum number of calls open at the same time
  /// Numbers of servers, up to max_inside, that are consistent with the recording, ascending. If
  /// max_inside is one of these numbers, the true number may also be higher.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
  /// alone_ns is the mean duration of calls that began while no other call was open, with a 90 %
  /// confidence interval. shared_ns is the mean duration of all other calls. 0: no calls.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double shared_ns = 0;
  /// Mean time in ns between the ends of successive calls, if a call was open all the time between.
  double gap_ns = 0;

  bool may_be(std::size_t servers) const {
    return std::find(plausible.begin(), plausible.end(), servers) != plausible.end();
  }
  /// Returns whether all calls may be served at the same time, without a limit.
  bool may_be_free() const { return may_be(max_inside); }
  /// Returns whether calls took significantly longer while other calls were open.
  bool is_slower_when_shared() const { return alone_ns > 0 && shared_ns > 1.1 * alone_high_ns; }
};

/// Estimates how many calls are served at the same time. For each possible number of servers, the
/// function computes from the recording how long each call was served (from its start, or from the
/// moment when a server became free, to its end) and the pauses between calls. With these times it
/// simulates a closed loop of threads that call and pause (Lazowska et al., Quantitative System
/// Performance, ch. 6), and compares eight statistics of the recording with those of the
/// simulation. A number of servers is plausible unless one of the statistics is far off. Three
/// criteria exclude more numbers: only the right number leads to similar service times, if these
/// times hardly vary; calls that were on the CPU at the same time were served at the same time; and
/// if calls take much longer while others are open, there must be a limit.
/// @param all  sorted by their ends. The result is deterministic.
served_at_once find_served_at_once(const std::vector<operation_call>& all);

/// Returns how long each call was served, in ns, if `servers` calls were served at the same time.
/// @param calls  sorted by their ends.
std::vector<double> service_times(const std::vector<operation_call>& calls, std::size_t servers);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
