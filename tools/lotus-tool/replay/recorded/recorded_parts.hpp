// Splits the recorded work on each batch or item into operations, and derives the rules by which
// the pipeline works, such as its order of dispatch.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the parts of all elements of recorded_pipeline::works. Each work has one part for each
/// of its operations. The parts are sorted by work, then by the operation's name.
/// @param work_of  for each span of run_batches::preprocessing_spans(): the index of the work to
///   which the span belongs, if any.
/// @param rounds  for each span: set to measured_work::rounds. Has as many elements as `work_of`.
std::deque<recorded_part> parts_of(const run_data& run, const std::vector<optional_work>& work_of,
                                   std::vector<std::uint32_t>& rounds);

/// Sorts parts by work and name, and joins those of the same operation in one work, which may
/// consist of several spans.
void merge_parts(std::deque<recorded_part>& parts);

/// A batch, or an item that becomes part of a batch.
struct found_unit {
  batch_id batch;  ///< the batch; for an item, the batch that contains the item
  bool of_item = false;
  std::vector<span_number> spans;  ///< the unit's spans, sorted by start
  std::int64_t start_ns = 0;
};

/// Returns whether threads of a stage of batches mostly build parts of the same batch at the same
/// time.
bool builds_in_parts(const run_batches& batches, stage_id stage,
                     const std::function<bool(span_number)>& is_used);

/// Returns the units of each epoch, items before batches. If batches were dispatched in the order
/// of their numbers, sorts them by number, even if a thread began late. Sorts all other units by
/// the start of their work.
/// @param is_used  returns whether a span counts as work on a unit.
/// @param threads  the number of threads of the first stage. If a batch began more than 4 * threads
///   places earlier or later than its number suggests, batches were not dispatched in the order of
///   their numbers.
/// @param in_parts  a stage that builds parts of a batch on several threads at once: each of its
///   spans is then an item of its batch.
std::vector<std::vector<found_unit>> units_of(const run_batches& batches,
                                              const std::function<bool(span_number)>& is_used,
                                              std::size_t threads,
                                              const std::optional<stage_id>& in_parts);

/// Returns when the consumer received a batch: at the end of its wait, or at the SBatchConsumed
/// record if this is earlier or no wait was recorded.
/// @param b  a batch that was received.
std::int64_t when_received(const run_batches& batches, const batch& b);

struct spans_of_unit {
  batch_id batch;                  ///< the batch; for an item, the batch that contains the item
  std::vector<span_number> spans;  ///< the unit's spans, sorted by start
};

/// Sets the members of the pipeline that describe its rules: when the threads and the consumer are
/// ready in each epoch, how units (batches and items) are assigned to threads, how many units may
/// be in flight, and in which order the consumer receives batches.
/// @param units  the spans of each unit, with the same index as in pipeline.units.
void find_policies(const run_data& run, const std::vector<spans_of_unit>& units,
                   recorded_pipeline& pipeline);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PARTS_HPP
