// Finds how calls of an operation overlapped, and estimates how many of them are served at the same
// time, for example by a device.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// A call of an operation, or all work of a stage on one batch or item. If the call waited for a
/// CPU, `start_ns` is moved later by this time, because it was not a wait for a server. A run may
/// have many millions of calls, so the times have no more digits than predictions need.
struct operation_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t file = 0;  ///< index of the log of the call's thread
  std::uint32_t work = 0;  ///< index of the work in recorded_pipeline::works
  float cpu_ns = 0;
  float queued_ns = 0;  ///< time in ns during which the call waited for a CPU
};

/// Calls `on_call(const operation_call&, service_ns, has_waited)` for each call. `service_ns` is
/// how long the call was served if there were `servers` servers; `has_waited` is whether it waited
/// for one of them.
/// @param calls  the calls, sorted by their ends.
template <class OnCall>
void for_each_served(const std::vector<operation_call>& calls, std::size_t servers,
                     OnCall&& on_call) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const operation_call& c = calls[i];
    const std::int64_t free_ns = i < servers ? INT64_MIN : calls[i - servers].end_ns;
    const std::int64_t served_ns = c.end_ns - std::max(c.start_ns, free_ns);
    on_call(c, static_cast<double>(std::max<std::int64_t>(0, served_ns)), free_ns > c.start_ns);
  }
}

/// How the calls of one operation overlapped.
struct call_overlap {
  std::size_t max_inside = 0;  ///< the maximum number of calls that were open at the same time
  /// alone_ns is the mean duration of the calls that began while no other call was open, with the
  /// ends of its 90 % confidence interval. shared_ns is the mean duration of all other calls. 0: no
  /// such calls.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double shared_ns = 0;
  /// Mean time in ns between the ends of two successive calls, while another call was open.
  double gap_ns = 0;

  /// Returns whether calls took significantly longer while other calls were open.
  bool is_slower_when_shared() const { return alone_ns > 0 && shared_ns > 1.1 * alone_high_ns; }
};

/// @param calls  all calls of the operation, sorted by their ends.
call_overlap overlap_of(const std::vector<operation_call>& calls);

/// An estimate of how many calls of one operation are served at the same time. A server is a model
/// of whatever a call may have to wait for, such as a lock or a channel of a device.
struct served_at_once {
  /// The numbers of servers, up to call_overlap::max_inside, that fit the recording, in ascending
  /// order. If max_inside is one of them, there may be more servers or no limit at all.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
};

/// Estimates how many calls are served at the same time, by trying possible numbers of servers. For
/// each number, computes how long each call was served (from its start, or from the time when a
/// server became free, to its end), and the pauses between calls. With these times, simulates a
/// closed loop of threads that call and pause (Lazowska et al., Quantitative System Performance,
/// ch. 6), and compares eight statistics of the simulation with those of the recording. A number of
/// servers is plausible unless one of the statistics is far off. Three further criteria exclude
/// numbers. If all calls are served for about the same time, only the right number of servers leads
/// to computed times that are similar. Calls that were on the CPU at the same time were served at
/// the same time. If calls take much longer while others are open, there must be a limit. The
/// result is deterministic, although the simulations use random numbers.
served_at_once find_served_at_once(const std::vector<operation_call>& calls,
                                   const call_overlap& overlap);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
