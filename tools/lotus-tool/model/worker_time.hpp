// What the workers spend their time on while they preprocess.
#ifndef LOTUS_TOOL_MODEL_WORKER_TIME_HPP
#define LOTUS_TOOL_MODEL_WORKER_TIME_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct op_share {
  std::string name;
  double share = 0;  ///< of the workers' time, 0..1
};

/// An operation that took long, and where.
struct slow_sample {
  std::string name;
  std::int64_t duration_ns = 0;
  double median_ns = 0;  ///< of the operation
  std::int64_t batch = 0;
  std::uint32_t epoch = 0;
  std::uint64_t worker = 0;
};

struct worker_time {
  std::vector<op_share> ops;
  std::vector<slow_sample> slow_samples;
  double samples_per_batch = 0;
};

/// Looks at the operations that ran inside counted batches. Shares are of the batches' own time;
/// STransform is left out, because it contains others. Slow samples are the longest operations that
/// took over ten times their median.
/// @param run  read with run_parts::operations.
worker_time measure_worker_time(const run_data& run, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_WORKER_TIME_HPP
