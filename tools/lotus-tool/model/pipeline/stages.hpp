// Measures the stages of a loader: their capacity, and how they spent their time.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_STAGES_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_STAGES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/slot_shares.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A stage of one loader.
struct stage_figures {
  stage_id stage = preprocess_stage;
  std::string name;                        ///< decoded, without the leading S; or "preprocess"
  bool of_items = false;                   ///< its numbers are items, not batches
  std::size_t numbers = 0;                 ///< how many items or batches went through
  double numbers_per_batch = 1;            ///< if of_items
  std::vector<std::int64_t> durations_ns;  ///< of its spans, unordered
  std::int64_t self_ns = 0;  ///< sum of its spans without other stages nested on their thread
  /// The maximum number of spans at once: see measure_stages().
  std::size_t slots = 0;
  /// The same for stages that share threads; nullopt for a stage with threads of its own.
  std::optional<std::size_t> pool;
  double mean_service_ns = 0;  ///< per number: the sum of its spans in this stage
  /// Numbers (items or batches) per second, at the recorded contention.
  std::optional<double> capacity_per_s;
  std::optional<double> batches_per_s;  ///< the same in batches
  slot_shares shares;                   ///< shares of its slots' time
  std::optional<cpu_split> cpu;         ///< of all its spans
};

/// Returns the stages in the order in which a batch passes through them (mean start within their
/// batches).
///
/// Slots: the threads that serve only this stage (95 % of their stage time), as the maximum that
/// existed at once, from first to last span in it. If such threads do less than 90 % of the stage's
/// work, its threads are shared; then the maximum number of its spans that overlap, at most the
/// threads of the pool. Capacity: slots / mean service time; for a pool, at most threads / sum of
/// its stages' service times for a batch. Busy: relative to the stage's own time, from its first
/// start to its last end in every epoch. Idle slots are blocked if the item that comes next is
/// ready and an item of the stage is not fetched, at most as many as such items. These moments
/// determine the bound of the output, and idle slots are blocked too when the output is at that
/// bound. Other idle slots are starved; a source, which has no stage before it, is never starved.
/// See measure_slots() for when this cannot be decided. The stages of a pool have separate shares
/// of busy, and the idle time of the pool in common.
std::vector<stage_figures> measure_stages(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGES_HPP
