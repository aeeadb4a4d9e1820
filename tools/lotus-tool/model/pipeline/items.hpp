// What went through the stages of a loader: items and batches, and how many workers had them.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/identifiers.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// An item, batch or request, and the spans that it went through.
struct item {
  std::int64_t number = 0;
  std::uint32_t epoch = 0;  ///< of a batch that is known; else how often it had come before
  bool of_item = false;
  time_span life;  ///< first start, last end
  std::int64_t service_ns = 0;
  std::int64_t queueing_ns = 0;
  std::vector<span_number> spans;  ///< in order of start
};

/// Everything that went through stages by its number, in order of start. Items and the batches that
/// they go into are different ones.
std::vector<item> items_of(const run_batches& batches);

/// The most preprocess spans that overlap, of batches in pieces the most batches; but never more
/// than the workers that lived at once, each from its first span to its last.
std::size_t workers_at_once(const run_batches& batches);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
