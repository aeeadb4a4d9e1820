// Measures how the workers divide their time among operations while they build batches.
#ifndef LOTUS_TOOL_MODEL_WORKER_TIME_HPP
#define LOTUS_TOOL_MODEL_WORKER_TIME_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "model/identifiers.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct op_share {
  std::string name;
  double share = 0;      ///< share of the workers' time, 0..1
  double per_batch = 0;  ///< mean number of calls in a batch
};

/// A call that took unusually long, with its position in the run.
struct slow_sample {
  std::string name;
  std::int64_t duration_ns = 0;
  double median_ns = 0;  ///< median of the operation's calls, in ns
  std::int64_t batch = 0;
  std::uint32_t epoch = 0;
  std::uint64_t worker = 0;
  std::int64_t at_ns = 0;  ///< start of the call, in ns after run_data::first_ns
  optional_file file;      ///< log of the worker that made the call
};

struct worker_time {
  std::vector<op_share> ops;
  std::vector<slow_sample> slow_samples;
  double samples_per_batch = 0;
};

/// Measures the operations inside the batches for which `counted` is true (see counted_batches()).
/// Shares are relative to the preprocess time of these batches. The operation STransform is left
/// out, because it contains other operations. Of the calls that took over ten times the median of
/// their operation, the longest become the slow samples.
/// @param run  a run that was read with run_parts::operations.
worker_time measure_worker_time(const run_data& run, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_WORKER_TIME_HPP
