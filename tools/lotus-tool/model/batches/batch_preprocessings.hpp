// Finds which spans of workers and stages belong to the preprocessing of one batch.
#ifndef LOTUS_TOOL_MODEL_BATCHES_BATCH_PREPROCESSINGS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_BATCH_PREPROCESSINGS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// One preprocessing of one batch: the work of building the batch once. A batch number normally has
/// one preprocessing in every epoch.
struct batch_preprocessing {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::int64_t number = 0;  ///< number of the batch
  consumer_id consumer;
  std::uint32_t epoch = 0;  ///< epoch of the batch, set by find_epochs()
};

struct batch_preprocessings {
  /// All spans in which batches and items were preprocessed. The member `batch` of these spans is
  /// an index in the list `all` below, not in run_batches::all().
  std::vector<preprocessing_span> spans;
  /// The preprocess records, as indices in the batch records. The spans of these records come first
  /// in `spans`, in the same order.
  std::vector<record_number> records;
  /// The preprocessings, sorted by consumer, number and start.
  std::vector<batch_preprocessing> all;
  bool in_parts = false;  ///< whether several spans build each batch; see run_batches::in_parts()
};

/// Groups spans into preprocessings by the rules described at run_batches, and decides for each
/// stage whether its numbers identify items or batches. Each element of `inclusions` reports that
/// an item became part of a batch. A stage processes items if more of its numbers occur in
/// `inclusions` as items than as batches. If both occur equally often, it processes items if most
/// of its spans ended before their item became part of a batch. If `inclusions` is empty, it
/// processes items if most of its numbers occur in no batch record. An item belongs to the first
/// batch of which it became part after work on the item began, unless work on the same number began
/// again in between. `in_pieces` says whether a single worker may build a batch in several spans.
batch_preprocessings find_preprocessings(const batch_records& records,
                                         const std::vector<stage_span>& stages,
                                         const std::vector<batch_inclusion>& inclusions,
                                         bool in_pieces = false);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_BATCH_PREPROCESSINGS_HPP
