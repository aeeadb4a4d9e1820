// Estimates how many calls of an operation are served at the same time, for example by a device.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

#include "replay/recorded/stored_calls.hpp"

namespace lotus::tool {

/// An estimate of how many calls of one operation are served at the same time. A server is a model
/// of whatever a call may have to wait for, such as a lock or a channel of a device.
struct served_at_once {
  std::size_t max_inside = 0;  ///< the maximum number of calls that were open at the same time
  /// The numbers of servers, up to max_inside, that fit the recording, in ascending order. If
  /// max_inside is one of them, there may be more servers or no limit at all.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
  /// alone_ns is the mean duration of the calls that began while no other call was open, with the
  /// ends of its 90 % confidence interval. shared_ns is the mean duration of all other calls. 0: no
  /// such calls.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double shared_ns = 0;
  /// Mean time in ns between the ends of two successive calls, while another call was open.
  double gap_ns = 0;

  bool may_be(std::size_t servers) const {
    return std::find(plausible.begin(), plausible.end(), servers) != plausible.end();
  }
  /// Returns whether it is possible that all calls are served at the same time, without a limit.
  bool may_be_free() const { return may_be(max_inside); }
  /// Returns whether calls took significantly longer while other calls were open.
  bool is_slower_when_shared() const { return alone_ns > 0 && shared_ns > 1.1 * alone_high_ns; }
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
served_at_once find_served_at_once(const stored_calls& all);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SERVED_AT_ONCE_HPP
