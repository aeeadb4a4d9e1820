// Finds the units that went through a pipeline.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_UNITS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_UNITS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// A batch, or an item that goes into one.
struct found_unit {
  batch_id batch;  ///< for an item, the batch that it becomes part of
  bool of_item = false;
  std::vector<span_number> spans;  ///< in order of start
  std::int64_t start_ns = 0;
};

/// Returns the units of each epoch, items before batches. Batches that were dispatched by number
/// are ordered by number, even if a thread began late; all others in the order in which they began.
/// @param is_used  whether a span counts.
/// @param threads  of the first stage: if a batch is further than four times this from the place of
///                 its number, dispatch was not by number.
std::vector<std::vector<found_unit>> units_of(const run_batches& batches,
                                              const std::function<bool(span_number)>& is_used,
                                              std::size_t threads);

/// When the consumer had a batch: at the end of its wait, which may be before SBatchConsumed.
/// @param b  was received.
std::int64_t when_taken(const run_batches& batches, const batch& b);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_UNITS_HPP
