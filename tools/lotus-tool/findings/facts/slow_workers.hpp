// Finds workers that need more time for a batch than the other workers.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_SLOW_WORKERS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_SLOW_WORKERS_HPP

#include <cstdint>
#include <vector>

#include "log/folder/log_files.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

struct slow_worker {
  std::uint64_t worker = 0;
  double mean_ns = 0;      ///< mean preprocess time of the worker
  double slower_than = 0;  ///< mean_ns divided by the median of all workers' means
};

/// Returns the slow workers, slowest first. A worker is slow if its mean preprocess time is more
/// than 1.25 times the median of all workers' means, and exceeds the median by more than three
/// standard errors. Without the second condition, chance alone could make a worker look slow.
std::vector<slow_worker> slow_workers_of(const run_batches& batches,
                                         const std::vector<bool>& counted, const run_files& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_SLOW_WORKERS_HPP
