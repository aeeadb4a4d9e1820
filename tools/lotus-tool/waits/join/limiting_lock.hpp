// Finds the lock that limits a run, if samples of waiting threads (wait_sample) prove it.
#ifndef LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP
#define LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP

#include <cstddef>
#include <optional>
#include <string>

#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

struct limiting_lock {
  blocked_on of;
  std::string operation;  ///< operation that waits for the lock most often, without S; "": none
  double share = 0;       ///< share of the preprocessing or stage time spent waiting, 0..1
};

/// Returns the lock that preprocessing, or the given stage, mostly waits for, if this lock limits
/// the run; otherwise nullopt. The lock limits the run if nearly all threads but its
/// holder wait for it on average; if at least one worker waits on average, and for nothing else
/// more often; or if more than half of the time is spent waiting for it. At least 30 samples must
/// have seen a thread wait for the lock.
/// @param stage    name of a stage, without S; "" for the preprocessing by workers.
/// @param workers  number of workers that existed at the same time; 0 if unknown.
/// @param skip  number of batches to skip at the start of every epoch.
std::optional<limiting_lock> find_limiting_lock(const run_data& run, const run_blocked_on& joined,
                                                const std::string& stage, std::size_t workers,
                                                std::size_t skip);

/// Returns a text such as "Decode waits for the lock decoder_mutex held by Decode on other threads:
/// 64 % of the time of preprocessing".
std::string lock_text(const limiting_lock& lock);

/// Advice for a run that a lock limits.
inline constexpr const char* lock_advice =
    "more workers do not help; do less work under the lock, or split the lock";

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_LIMITING_LOCK_HPP
