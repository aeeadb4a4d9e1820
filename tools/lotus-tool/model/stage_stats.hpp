// Statistics of the stages of a run, as all commands show them.
#ifndef LOTUS_TOOL_MODEL_STAGE_STATS_HPP
#define LOTUS_TOOL_MODEL_STAGE_STATS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/figures.hpp"
#include "model/pipeline/item_tree.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Statistics of a stage's spans, and of the stage.
struct stage_stats : figures {
  stage_figures stage;
};

/// The batches, items or requests that went through stages, by their numbers.
struct item_stats : figures {  ///< of their latency; the name is "items" or "batches"
  std::vector<item> slowest;   ///< slowest first
  std::vector<std::vector<item_node>> trees;  ///< of `slowest`
};

/// Asynchronous operations of one name, each from the start of its first segment to the end of its
/// last.
struct async_stats : figures {
  std::int64_t running_ns = 0;  ///< of the total; they were suspended in the rest
};

/// In the order of measure_stages(); empty if the program names no stage and has only batches of
/// workers.
std::vector<stage_stats> describe_stages(const run_data& run);

/// Batches and items that went through stages, each only if there are any; empty if the program
/// names no stage. @param slowest  the number of slowest ones to describe in detail.
std::vector<item_stats> describe_items(const run_data& run, std::size_t slowest);

/// In order of first appearance.
std::vector<async_stats> describe_async(const run_data& run);

/// Writes the members of a stage's JSON object, with the figures for `output`.
void write_stage(json_writer& json, const stage_stats& stage, figure_output output);
/// Writes the member "tree": an array of what was done to an item.
void write_tree(json_writer& json, const std::vector<item_node>& tree);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_STAGE_STATS_HPP
