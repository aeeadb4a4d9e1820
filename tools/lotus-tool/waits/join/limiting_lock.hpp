// Finds the lock that limits a run, if samples of waiting threads (wait_sample) show that it does.
#ifndef LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP
#define LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP

#include <cstddef>
#include <optional>
#include <string>

#include "model/path/critical_path.hpp"
#include "model/pipeline/sampled_lock.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

struct limiting_lock {
  blocked_on of;
  std::string operation;  ///< operation that waits for the lock most often, without S; "": none
  /// Share (0..1) of the preprocessing or stage time that is spent waiting for the lock.
  double share = 0;
};

/// Returns the share (0..1) of the run in which the critical path leads through preprocessing, or
/// the given stage ("": preprocessing), and this is blocked or asleep.
double blocked_on_path(const run_data& run, const critical_path& path, const std::string& stage);

/// Returns the lock that preprocessing, or the given stage, mostly waits for, if this lock limits
/// the run; otherwise nullopt. A lock limits the run in five cases: nearly all threads except its
/// holder wait for it; on average at least one worker waits for it, and workers wait for nothing
/// else more often; waits for it fill a quarter of the critical path; more than half of the time is
/// spent waiting for it; or a seventh is, and the work of its holder's operation fills the run
/// once. At least 10 samples must show a thread that waits for the lock, and so many that chance
/// does not explain their share.
/// @param stage    name of a stage, without the S that logs put before it; "" for preprocessing.
/// @param workers  number of workers that existed at the same time; 0 if unknown.
/// @param skip     number of batches to leave out at the start of every epoch.
std::optional<limiting_lock> find_limiting_lock(const run_data& run, const run_blocked_on& joined,
                                                const critical_path& path, const std::string& stage,
                                                std::size_t workers, std::size_t skip);

/// Returns the lock for which an operation waited in most samples; nullopt if there are too few
/// samples to estimate how long the operation waited.
std::optional<sampled_lock> find_sampled_lock(const run_blocked_on& joined);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP
