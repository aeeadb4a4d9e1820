// Finds the items and batches that went through the stages of a loader, and the number of workers.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/identifiers.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// An item, batch or request, and the spans in which it was worked on.
struct item {
  std::int64_t number = 0;
  std::uint32_t epoch = 0;  ///< of a known batch; otherwise how often this number came before
  bool of_item = false;
  time_span life;  ///< from its first start to its last end
  std::int64_t service_ns = 0;
  std::int64_t queueing_ns = 0;
  std::vector<span_number> spans;  ///< in order of start
};

/// Everything that went through stages with a number, in order of start. Items and the batches that
/// they become part of are separate.
std::vector<item> items_of(const run_batches& batches);

/// The maximum number of preprocess spans (of batches, if they are in segments) that overlap; but
/// no more than the workers that existed at once, each from its first span to its last.
std::size_t workers_at_once(const run_batches& batches);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
