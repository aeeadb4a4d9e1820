// Finds which spans of workers and stages belong to the preprocessing of one batch.
#ifndef LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One preprocessing of a batch; its number has one in every epoch.
struct batch_making {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::int64_t number = 0;  ///< number of the batch
  consumer_id consumer;
  std::uint32_t epoch = 0;  ///< set by find_epochs()
};

struct makings {
  std::vector<making_span> spans;  ///< `batch` is an index in `all`, not in a run
  /// The records of the preprocess spans, which come first in `spans`.
  std::vector<record_number> records;
  std::vector<batch_making> all;  ///< in order of consumer, number, start
  bool in_pieces = false;         ///< see run_batches::in_pieces()
};

/// Applies the rules described at run_batches. A stage's numbers are items if more of them are
/// known as items that a batch took than as batches that took items; if equally many are, if they
/// mostly ended before they were taken; or, in a run without takings, if most of them are not
/// batches in any record. An item belongs to the batch that takes it first after the item began,
/// unless the item begins again before that.
makings find_makings(const batch_records& records, const std::vector<stage_span>& stages,
                     const std::vector<batch_taking>& takings);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP
