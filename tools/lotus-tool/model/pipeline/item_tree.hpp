// Lists what was done to an item: its stages, and the operations inside them.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ITEM_TREE_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ITEM_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/pipeline/items.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct item_node {
  std::string name;  ///< of a stage without the leading S, of an operation with it
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t thread = 0;  ///< number of the thread's log
  std::size_t depth = 0;     ///< 0: one of the item's own spans
};

/// Returns, for every item, its spans in order of start, each followed by the operations of its
/// thread inside it, one level deeper than what they are nested in. The operation that is the stage
/// itself is left out.
/// @param run  read with run_parts::operations; without them there are only spans.
std::vector<std::vector<item_node>> trees_of(const run_data& run, const std::vector<item>& items);

/// The `count` items with the longest latency, longest first.
std::vector<item> slowest_items(std::vector<item> items, std::size_t count);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ITEM_TREE_HPP
