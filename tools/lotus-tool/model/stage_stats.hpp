// The stages of a run as every command tells them.
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

/// Figures of a stage's spans, and of the stage.
struct stage_stats : figures {
  stage_figures stage;
};

/// What went through the stages: batches, items or requests, by their numbers.
struct item_stats : figures {                 ///< of their lives; the name is "items" or "batches"
  std::vector<item> slowest;                  ///< the slowest first
  std::vector<std::vector<item_node>> trees;  ///< of those
};

/// Asynchronous operations of one name, each from its first piece to its last.
struct async_stats : figures {
  std::int64_t running_ns = 0;  ///< of the total; the rest they were suspended
};

/// In the order of measure_stages(); none where no stage is named: batches of workers only.
std::vector<stage_stats> describe_stages(const run_data& run);

/// Batches and items that went through stages, each only where there are some; none where no stage
/// is named. @param slowest  so many of them are told with what was done to them.
std::vector<item_stats> describe_items(const run_data& run, std::size_t slowest);

/// In order of first appearance.
std::vector<async_stats> describe_async(const run_data& run);

/// Members of a stage's JSON object, its figures those of `output`.
void write_stage(json_writer& json, const stage_stats& stage, figure_output output);
/// The member "tree": an array of what was done to an item.
void write_tree(json_writer& json, const std::vector<item_node>& tree);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_STAGE_STATS_HPP
