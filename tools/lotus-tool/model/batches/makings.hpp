// Which spans of workers and stages made one batch together.
#ifndef LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP

#include <cstdint>
#include <vector>

#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// The making of a batch, once: in every epoch there is one of its number.
struct batch_making {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::int64_t number = 0;  ///< of the batch
  consumer_id consumer;
  std::uint32_t epoch = 0;  ///< to be found
};

struct makings {
  std::vector<making_span> spans;      ///< `batch` is the place in `all`, not in a run
  std::vector<record_number> records;  ///< by span, as many as are preprocess spans
  std::vector<batch_making> all;       ///< in order of consumer, number, start
  bool in_pieces = false;              ///< run_batches::in_pieces()
};

/// As run_batches tells. A stage's numbers are items where more of them are known as items that
/// were taken than as batches that took some (equally many: where they mostly began before their
/// taking); or, in a run without takings, where most of them are no batch that any record tells of.
/// An item belongs to the batch that takes it first after it began, and before it begins anew.
makings find_makings(const batch_records& records, const std::vector<stage_span>& stages,
                     const std::vector<batch_taking>& takings);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_MAKINGS_HPP
