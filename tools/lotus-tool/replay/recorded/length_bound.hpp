// Finds what the simulation does not contain, and what a changed run may have to wait for.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_LENGTH_BOUND_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_LENGTH_BOUND_HPP

#include <map>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Calls of which a changed run may need as many as the recorded one, in no less time. All shares
/// (0..1) are of the run's length.
struct length_bound {
  static constexpr double worth_naming = 0.5;  ///< smallest `share`

  std::string name;  ///< the operation that takes most of the time, without the S of logs
  /// Whether only so many calls are allowed in each interval of time. Otherwise the calls are work
  /// outside of batches, such as downloads of the files from which batches are built, and the
  /// recording does not show whether batches depend on them.
  bool is_rate = false;
  double share = 0;  ///< least time of all calls
  /// Time before the first call and after the last one.
  double around_share = 0;
  /// Only for work outside of batches: for each operation, by name, its time without the operations
  /// inside it.
  std::map<std::string, double> self_shares{};

  /// Returns the length of the changed run as a share of the recorded length, if it depends on
  /// these calls and nothing else limits it.
  /// @param faster  for each changed operation: the factor by which it becomes faster.
  /// @param gain    the factor by which a change makes the rest of the run faster.
  double least_length(const std::map<std::string, double>& faster, double gain) const;
};

/// Returns the work of threads that neither build nor receive batches, if it takes at least half of
/// the run and is done one call after another: all calls of one operation, also if each has a
/// thread of its own, or all operations of one thread. Calls that begin after the last batch was
/// begun are left out.
/// @param run  a run that was read with run_parts::operations.
std::vector<length_bound> bounds_of_serial_work(const run_data& run);

/// Returns the operations of which only so many calls are allowed in each interval of time (a rate
/// limit), although the run does not always reach the limit: calls wait until the next interval
/// begins, always after the same number of calls, but not always after the same time.
/// @param run  a run that was read with run_parts::operations.
std::vector<length_bound> bounds_of_rates(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_LENGTH_BOUND_HPP
