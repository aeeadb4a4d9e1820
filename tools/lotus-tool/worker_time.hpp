// What the workers spend their time on while they preprocess.
#ifndef LOTUS_TOOL_WORKER_TIME_HPP
#define LOTUS_TOOL_WORKER_TIME_HPP

#include <cstddef>
#include <vector>

#include "diagnose.hpp"
#include "log_files.hpp"
#include "run_model.hpp"

namespace lotus::tool {

/// By place in run_batches::all(): false for the first `skip` batches of every epoch.
std::vector<bool> counted_batches(const run_batches& batches, std::size_t skip);

struct worker_time {
  std::vector<op_share> ops;
  std::vector<slow_sample> slow_samples;
  double samples_per_batch = 0;
};

/// Reads the logs again, for the operations that ran inside counted batches. Shares are of the
/// batches' own time; STransform is left out, because it contains others. Slow samples are the
/// longest operations that took over ten times their median. Throws input_error.
worker_time measure_worker_time(const run_files& run, const run_batches& batches,
                                const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WORKER_TIME_HPP
