// Estimates how many calls of an operation are served at once, as far as a recording shows it.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// A call of an operation, or the whole work of a stage on one unit. Time in which it waits for a
/// CPU is removed at its start, because it is not time spent waiting for a server.
struct operation_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t file = 0;  ///< log of its thread
  std::uint32_t work = 0;  ///< index in recorded_pipeline::works
  double cpu_ns = 0;
};

/// What a recording shows of one operation.
struct served_at_once {
  std::size_t most_inside = 0;  ///< the maximum number of calls open at the same time
  /// Numbers of servers, up to most_inside, that are consistent with the recording; ascending. If
  /// most_inside is among them, the true number may be any higher one.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
  /// Mean duration of calls that began while no other call was open (with a 90 % interval), and of
  /// all other calls. 0 if there are none.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double beside_ns = 0;
  /// Mean time between the ends of successive calls while at least one call was always open.
  double gap_ns = 0;

  bool may_be(std::size_t servers) const {
    return std::find(plausible.begin(), plausible.end(), servers) != plausible.end();
  }
  /// Whether there may be no limit.
  bool may_be_free() const { return may_be(most_inside); }
  /// Whether calls took significantly longer while other calls were open.
  bool is_slower_beside_others() const { return alone_ns > 0 && beside_ns > 1.1 * alone_high_ns; }
};

/// For each number of servers: computes the implied service times (a call is served from its start,
/// or from when its server became free, to its end) and the times between calls; simulates the
/// closed loop (Lazowska et al., Quantitative System Performance, ch. 6); and compares eight
/// statistics of the recording with the simulated ones. A number stays plausible unless one of the
/// statistics is far off. Three more criteria decide: if service times hardly vary, only the right
/// number gives a narrow distribution; calls that were on the CPU at the same time were served at
/// the same time; and calls that do not wait take as long together with others as alone.
/// @param all  in order of their ends. The result is deterministic.
served_at_once find_served_at_once(const std::vector<operation_call>& all);

/// Returns how long each call was served, if `servers` calls were served at once. Times in ns.
/// @param calls  in order of their ends.
std::vector<double> service_times(const std::vector<operation_call>& calls, std::size_t servers);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
