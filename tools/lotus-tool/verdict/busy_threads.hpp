// How many threads of a run were busy at once, against the CPUs that they might use.
#ifndef LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP
#define LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP

#include <cstddef>

#include "model/run_data.hpp"

namespace lotus::tool {

struct busy_threads {
  std::size_t most = 0;
  double cpus = 0;        ///< 0: not known
  double over_share = 0;  ///< of the time in which any was busy: that in which more were than CPUs
};

/// A thread is busy within spans of batches, stages and operations, and the consumer's in a step.
/// Where it is known when it was blocked, it is not busy then; where not, a step counts for
/// nothing, for most of it may be another device's work.
/// @param run  read with run_parts::operations.
busy_threads count_busy_threads(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP
