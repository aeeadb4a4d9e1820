// Describes a run as a pipeline that can be simulated: the recorded work, the threads that did the
// work, and the rules by which they did it.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/sampled_lock.hpp"
#include "model/run_data.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/length_bound.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {

/// The part of a work that one operation did, without the operations inside it. (A work is what one
/// stage did for one batch or item.)
struct recorded_part {
  std::uint32_t work = 0;  ///< index of the work in recorded_pipeline::works
  std::uint32_t name = 0;  ///< index of the name in run_data::names
  double cpu_ns = 0;
  double blocked_ns = 0;
  double queued_ns = 0;
};

struct recorded_stage {
  stage_id stage;
  std::string name;  ///< name of the stage without the S that logs put before it, or "preprocess"
  bool of_items = false;
  std::size_t threads = 1;
  std::optional<std::size_t> pool;
  /// The limit planned_stage::max_ahead, if the stage has one; otherwise the recorded maximum.
  std::size_t max_ahead = 0;
  /// Whether the stage mostly began a unit only when the queue after it was no longer full.
  bool is_held_up = false;
};

/// One loader of a recorded run, in the form that plan_of() uses to plan simulations.
struct recorded_pipeline {
  std::vector<recorded_stage> stages;
  std::vector<std::size_t> pools;
  std::vector<planned_unit> units;  ///< all batches and items, sorted by epoch, then by start
  std::vector<measured_work> works;
  /// Parts of all works, sorted by work. A deque does not copy them when it grows.
  std::deque<recorded_part> parts;
  std::vector<shared_operation> shared;
  /// The lock for which an operation waited, if wait samples show one. record_pipeline() does not
  /// set it, because it does not read wait samples.
  std::optional<sampled_lock> lock;
  /// For each unit (batch or item): the time in ns to receive it; see planned_use::take_ns.
  std::vector<double> takes_ns;
  std::vector<measured_work> steps;  ///< for each unit, the consumer's step; see planned_use::step
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;
  /// The limit replay_plan::in_flight, if there is one; otherwise the recorded maximum.
  std::size_t in_flight = 0;
  /// Whether in_flight is a limit: threads had to wait when so many units were in flight.
  bool in_flight_held = false;
  /// Whether the pipeline limits in_flight independently of its queues: the first of several stages
  /// had to wait although the queue after it was not full. More threads do not raise such a limit.
  bool budget_held = false;
  /// Maximum number of units that the first stage has begun and the last stage has not finished
  /// yet, if the recording shows such a limit.
  std::size_t unfinished = unbounded;
  bool round_robin = false;
  bool ordered = true;
  bool has_consumer = true;  ///< if false, a batch is complete after its last stage
  /// Whether batches are never built during a step: the consumer builds them itself, or another
  /// thread begins a batch only when the consumer asks for it.
  bool makes_itself = false;
  /// Whether each batch is built by a thread of its own, so that workers are batches in flight.
  /// record_pipeline() does not set it.
  bool thread_for_each = false;
  /// Whether another thread builds the batches on demand; makes_itself is then also true.
  bool on_demand = false;
  bool cpu_known = false;      ///< whether CPU time was recorded
  std::optional<double> cpus;  ///< number of CPUs that the run could use, if known
  /// CPU time in ns that the run's processes used outside of `works` and `steps`, for example in
  /// threads without markers; 0 if it is unknown.
  double unrecorded_cpu_ns = 0;
  /// Mean number of CPUs that other programs used during the run; nullopt if it is unknown.
  std::optional<double> others_cpus;
  /// Whether the CPUs were hardly ever idle, so that other programs wanted more than they got.
  bool cpus_always_busy = false;
  /// Mean number of units (items or batches) of the first stage per batch.
  double items_per_batch = 1;
  std::vector<length_bound> bounds;  ///< what may make a changed run longer than simulated
  double achieved_per_s = 0;         ///< measured throughput; see run_batches::achieved_per_s()
  double steady_per_s = 0;

  /// Returns the maximum number of batches in flight per worker.
  std::size_t prefetch() const {
    return static_cast<std::size_t>(std::lround(static_cast<double>(in_flight) / items_per_batch /
                                                static_cast<double>(stages.front().threads)));
  }

  std::size_t threads() const {
    return std::accumulate(stages.begin(), stages.end(), std::size_t{0},
                           [](std::size_t n, const recorded_stage& s) { return n + s.threads; });
  }

  /// Returns the sums of the times in `works` and `steps`.
  measured_work all_work() const {
    const measured_work sum = sum_of(works);
    const measured_work also = sum_of(steps);
    return {sum.cpu_ns + also.cpu_ns, sum.blocked_ns + also.blocked_ns,
            sum.queued_ns + also.queued_ns};
  }

  /// Removes all limits on the number of units in flight and in queues.
  void drop_limits() {
    in_flight = std::max(in_flight, units.size());
    in_flight_held = budget_held = false;
    unfinished = unbounded;
    for (recorded_stage& s : stages) s.max_ahead = std::max(s.max_ahead, units.size());
  }

  /// Returns the limit in_flight as a number of batches, at least 1.
  std::size_t batches_in_flight() const {
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(std::lround(static_cast<double>(in_flight) / items_per_batch)));
  }

  /// Returns whether the number of workers is a single setting: there is only one stage, or the
  /// first stage builds complete batches or shares a pool of threads.
  bool has_workers() const {
    const recorded_stage& first = stages.front();
    return stages.size() == 1 || first.stage == preprocess_stage || first.pool;
  }

  /// Returns the number of threads of the first stage, or of the pool that it shares.
  std::size_t workers() const {
    const recorded_stage& first = stages.front();
    return first.pool ? pools[*first.pool] : first.threads;
  }
};

/// A run in a form that can be simulated, or the reason why it cannot be simulated.
struct recording {
  std::optional<recorded_pipeline> pipeline;
  std::string why_not;
};

/// Extracts the pipeline of a run.
/// @param run  a run that was read with run_parts::operations.
recording record_pipeline(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP
