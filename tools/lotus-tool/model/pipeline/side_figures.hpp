// Describes what side logs contain: asynchronous operations, and counters over time.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_FIGURES_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_FIGURES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One asynchronous operation, from the start of its first segment to the end of its last segment.
struct async_operation {
  std::uint32_t name = 0;  ///< name of the first segment: index in run_data::names
  std::int64_t id = 0;
  std::uint64_t process = 0;
  time_span extent;
  /// Sum of the segments' durations. During the other part of `extent`, the operation was
  /// suspended.
  std::int64_t running_ns = 0;
  std::vector<std::uint32_t> segments;  ///< indices in side_data::segments, in order of start
};

/// Returns the asynchronous operations in order of start.
std::vector<async_operation> async_operations_of(const side_data& side);

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

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_FIGURES_HPP
