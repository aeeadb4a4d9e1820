// Follows the wait of the main thread from thread to thread, up to something that ends it.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_WAIT_CHAIN_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_WAIT_CHAIN_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// What the threads of a group did while the previous group of the chain waited for them.
struct chain_hop {
  std::size_t group = 0;            ///< index of the group
  std::optional<std::size_t> wait;  ///< index in its `blocked`; nullopt: its threads used a CPU
  /// Share of the previous wait; of the first group of a chain, of the group's time.
  double share = 0;
  /// Whether this wait and the previous one were seen at the same moments. If not, `share` is a
  /// share of this group's time.
  bool seen = false;
  double time_s = 0;  ///< `share` in seconds, summed over the threads of the group of that share
  /// When it was first and last seen after the hops before, in seconds; 0: not seen so.
  double begin_s = 0;
  double end_s = 0;
};

/// Returns the dominant chain that begins with a group: first that group, and last the group whose
/// threads run, sleep, wait for something outside, or wait for something unknown. Empty if the
/// samples contradict each other, so that times in the chain would be wrong.
std::vector<chain_hop> wait_chain(const thread_samples& samples,
                                  const std::vector<thread_activity>& groups, std::size_t first);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_WAIT_CHAIN_HPP
