// Measures the stages of a loader: the capacity of each stage, and how its slots spent their time.
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

/// The measurements of one stage of one loader.
struct stage_figures {
  stage_id stage = preprocess_stage;
  std::string name;                        ///< name of the stage; "preprocess" for preprocess_stage
  bool of_items = false;                   ///< whether the stage processes items, not batches
  std::size_t numbers = 0;                 ///< how many items or batches went through the stage
  double numbers_per_batch = 1;            ///< mean number of items per batch, if of_items
  std::vector<std::int64_t> durations_ns;  ///< durations of the stage's spans, unordered
  /// Total duration of the stage's spans, without nested spans of other stages on the same thread,
  /// and without waits for parts of the batch in other threads (awaited_spans).
  std::int64_t self_ns = 0;
  /// The number of items or batches that the stage can process at the same time; see
  /// measure_stages().
  std::size_t slots = 0;
  /// The pool of threads that the stage shares with other stages, as a number; nullopt for a stage
  /// with its own threads.
  std::optional<std::size_t> pool;
  /// Mean time that one item or batch spends in spans of this stage, without such waits.
  double mean_service_ns = 0;
  /// Items or batches per second that the slots could process if they were always busy.
  std::optional<double> capacity_per_s;
  std::optional<double> batches_per_s;  ///< capacity in batches per second
  slot_shares shares;                   ///< how the slots spent their time
  /// How long all spans of the stage ran, waited for a CPU, and were blocked; nullopt if unknown.
  std::optional<cpu_split> cpu;
};

/// Returns the stages in the order in which a batch passes through them (by their mean start within
/// their batches).
///
/// - Slots: a thread belongs only to this stage if at least 95 % of the time that it spends in any
///   stage is in this stage. The slots are the maximum number of such threads that existed at the
///   same time, each from its first to its last span. If these threads do less than 90 % of the
///   stage's work, the stage shares a pool of threads with other stages. Then the slots are the
///   maximum number of the stage's spans that overlap, at most the threads of the pool.
/// - Capacity: slots / mean service time; for the stages of a pool, at most threads / sum of their
///   service times for a batch.
/// - Busy: relative to the time from the stage's first start to its last end in each epoch. Each
///   stage of a pool has its own busy share.
/// - Starved and blocked: see measure_slots(). The stages of a pool have the shares of the whole
///   pool.
std::vector<stage_figures> measure_stages(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_STAGES_HPP
