// Statistics of the stages of a run, as all commands show them.
#ifndef LOTUS_TOOL_MODEL_STAGE_STATS_HPP
#define LOTUS_TOOL_MODEL_STAGE_STATS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "describe/described.hpp"
#include "model/figures.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// An item or batch with what was done for it.
struct slow_item : item {
  std::vector<item_node> tree;  ///< its stages and operations
};

/// Statistics of the durations of a stage's spans, with the measurements of the stage.
struct stage_stats : figures {
  stage_figures stage;
};

/// Statistics of the batches, items or requests that went through stages, identified by their
/// numbers. The statistics describe the latency; the name is "items" or "batches".
struct item_stats : figures {
  /// Whether the latency of a batch begins with the first item that became part of it.
  bool from_first_item = false;
  std::vector<slow_item> slowest;  ///< those with the longest latency, slowest first
};

/// Statistics of the asynchronous operations with one name. The durations are from the start of an
/// operation's first segment to the end of its last.
struct async_stats : figures {
  /// For how much of the total time the operations ran. During the other part of the total time
  /// they were suspended.
  std::int64_t running_ns = 0;
};

/// Returns the statistics of the stages in the order of measure_stages(). Empty if the program has
/// no named stages.
std::vector<stage_stats> describe_stages(const run_data& run);

/// Returns up to two entries: the statistics of the batches and those of the items that went
/// through stages. An entry is left out if the run has no such batches or items, and both are if
/// the program has no named stages. `slowest` is the number of items or batches with the longest
/// latency to describe in detail.
std::vector<item_stats> describe_items(const run_data& run, std::size_t slowest);

/// Returns statistics of the asynchronous operations, in the order in which names first occur.
std::vector<async_stats> describe_async(const run_data& run);

/// Returns the description of a stage, of latencies or of an asynchronous operation in an output.
description<stage_stats> stage_columns(figure_output output);
description<item_stats> item_columns(figure_output output);
description<async_stats> async_columns(figure_output output);

const description<item_node>& description_of(const item_node*);
const description<stage_figures>& description_of(const stage_figures*);
const description<stage_stats>& description_of(const stage_stats*);
const description<slow_item>& description_of(const slow_item*);
const description<item_stats>& description_of(const item_stats*);
const description<async_stats>& description_of(const async_stats*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_STAGE_STATS_HPP
