// Computes statistics of the counters of a run.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_COUNTERS_OVER_TIME_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_COUNTERS_OVER_TIME_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Name of the counter with the size of the heap, as in the logs.
inline constexpr char heap_counter[] = "Sheap bytes";

struct counter_figures {
  std::string name;      ///< name of the counter, without the S that begins it in logs
  bool of_heap = false;  ///< whether it is the size of the heap, which `run --memory` records
  std::size_t count = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::int64_t last = 0;
  /// The mean over time: each value of the counter counts until the same process records the next
  /// one. If all values are from the same moment, this is their arithmetic mean.
  double mean = 0;
};

/// Returns the counters in order of first appearance. If several processes record the same counter,
/// the statistics cover the values of all processes.
std::vector<counter_figures> counters_of(const run_data& run);

const description<counter_figures>& description_of(const counter_figures*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_COUNTERS_OVER_TIME_HPP
