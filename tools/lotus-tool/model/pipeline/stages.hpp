// The stages of a loader: how much they can do, and what they did with their time.
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
  std::string name;                        ///< decoded, without its S; "preprocess"
  bool of_items = false;                   ///< its numbers are items, not batches
  std::size_t numbers = 0;                 ///< how many items or batches went through
  double numbers_per_batch = 1;            ///< where of_items
  std::vector<std::int64_t> durations_ns;  ///< of its spans, in no order
  std::int64_t self_ns = 0;                ///< of them, without other stages nested on their thread
  /// The most that work at once: see measure_stages().
  std::size_t slots = 0;
  /// Stages that share their threads have the same; no stage has it that has threads of its own.
  std::optional<std::size_t> pool;
  double mean_service_ns = 0;            ///< for one number: the sum of its spans here
  std::optional<double> capacity_per_s;  ///< numbers (items or batches) at this contention
  std::optional<double> batches_per_s;   ///< the same in batches
  slot_shares shares;                    ///< of its slots' time
  std::optional<cpu_split> cpu;          ///< of all its spans
};

/// The stages in the order in which a batch comes to them (mean start within their batches).
///
/// Slots: threads that serve only the stage (95 % of their stage time), by how many lived at once,
/// from first to last span in it; where such do less than 90 % of the stage's work its threads are
/// shared: then the most of its spans that overlap, and at most the pool's threads at once.
/// Capacity: slots / mean service time; of a pool at most threads / sum of its stages' service
/// times for a batch. Busy: of the stage's own time, from its first start to its last end of every
/// epoch. Idle slots are blocked where the item that comes next lies ready and an own item is not
/// fetched, at most as many as such lie; from these moments the bound of the output is known, and
/// where its output is at that bound they are blocked too. The rest is starved; a source, which has
/// no stage before it, is never starved; see measure_slots() for when nobody can tell. A pool's
/// stages have their own share of busy, and the pool's idle time in common.
std::vector<stage_figures> measure_stages(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGES_HPP
