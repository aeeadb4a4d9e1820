// What went through a pipeline, as units that can be replayed.
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
  batch_id batch;  ///< of an item the one it goes into
  bool of_item = false;
  std::vector<span_number> spans;  ///< in order of start
  std::int64_t start_ns = 0;
};

/// Of each epoch, items before batches. Batches that a sampler numbered come by number, though one
/// thread or the other be late; otherwise all come as they began.
/// @param is_used  whether a span counts.
/// @param threads  of the first stage: what is farther than four times as many from its number's
///                 place was not given out by number.
std::vector<std::vector<found_unit>> units_of(const run_batches& batches,
                                              const std::function<bool(span_number)>& is_used,
                                              std::size_t threads);

/// When the consumer had a batch: the end of its wait, which may be before SBatchConsumed.
/// @param b  was handed over.
std::int64_t when_taken(const run_batches& batches, const batch& b);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_UNITS_HPP
