// Lists the work that was done on an item: its stages, and the operations inside them.
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
  /// Name of a stage, or name of an operation with the S that begins it in logs.
  std::string name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t thread = 0;  ///< number of the thread's log
  std::size_t depth = 0;     ///< nesting depth; 0 for one of the item's own spans
};

/// Returns, for each item, its spans in order of start. Each span is followed by the operations
/// inside it on the same thread. The depth of an operation is one more than that of the span or
/// operation that contains it. Logs also contain the span of a stage as an operation; that
/// operation is left out.
/// @param run  a run that was read with run_parts::operations; otherwise the result contains only
///   spans.
std::vector<std::vector<item_node>> trees_of(const run_data& run, const std::vector<item>& items);

/// Returns the `count` items with the longest latency; the item with the longest comes first.
std::vector<item> slowest_items(std::vector<item> items, std::size_t count);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ITEM_TREE_HPP
