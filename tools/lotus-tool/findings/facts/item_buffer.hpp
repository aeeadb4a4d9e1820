// Finds a buffer of items, such as a shuffle buffer, that is filled before batches take items.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_ITEM_BUFFER_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_ITEM_BUFFER_HPP

#include <cstddef>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A buffer from which batches take random items, but none before it holds a number of them.
struct item_buffer {
  std::size_t fills = 0;  ///< how often the consumer waited until it was full; 0: there is none
  std::size_t items = 0;  ///< usual number of items that are ready when a batch takes the first one
  double batches = 0;     ///< for how many batches these are enough
  double mean_ns = 0;     ///< mean time of one of these waits
  double share = 0;       ///< share (0..1) of these waits in all time for which the consumer waited
};

/// Returns no buffer unless the run records which items became part of which batch, and items are
/// taken in random order: a thread that is late takes the oldest item first, and one that sorts
/// items into batches of similar length takes the item at once that completes a batch.
item_buffer find_item_buffer(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_ITEM_BUFFER_HPP
