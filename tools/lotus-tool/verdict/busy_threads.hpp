// Compares the number of threads of a run that were busy at once with the number of usable CPUs.
#ifndef LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP
#define LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP

#include <cstddef>

#include "model/run_data.hpp"

namespace lotus::tool {

struct busy_threads {
  std::size_t most = 0;
  double cpus = 0;        ///< 0 if unknown
  double over_share = 0;  ///< share of the time with any busy thread in which more threads were
                          ///< busy than there are CPUs
};

/// A thread is busy inside the spans of batches, stages and operations; the consumer's thread is
/// also busy during a step. Time in which a thread is known to have been blocked does not count. If
/// that is not known, steps do not count at all, because most of a step may be the work of another
/// device.
/// @param run  read with run_parts::operations.
busy_threads count_busy_threads(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_BUSY_THREADS_HPP
