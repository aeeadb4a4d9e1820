// Describes a run as a pipeline that can be simulated: the work, the threads that did it, and the
// rules that held.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {

/// The part of a unit's work that one operation did itself, without the operations inside it.
struct recorded_part {
  std::uint32_t work = 0;  ///< index in recorded_pipeline::works
  std::uint32_t name = 0;  ///< index in run_data::names
  double cpu_ns = 0;
  double blocked_ns = 0;
  double queued_ns = 0;
};

struct recorded_stage {
  stage_id stage;
  std::string name;  ///< decoded, without the leading S; or "preprocess"
  bool of_items = false;
  std::size_t threads = 1;
  std::optional<std::size_t> pool;
  std::size_t most_ahead = 0;  ///< as in planned_stage, as far as seen
};

/// One loader of one run.
struct recorded_pipeline {
  std::vector<recorded_stage> stages;
  std::vector<std::size_t> pools;
  std::vector<planned_unit> units;  ///< by epoch, then in the order in which they began
  std::vector<measured_work> works;
  std::deque<recorded_part> parts;  ///< by work; a deque, because it grows without copying
  std::vector<shared_operation> shared;
  std::vector<double> takes_ns;      ///< by unit, as in planned_use
  std::vector<measured_work> steps;  ///< by unit, as in planned_use
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;
  std::size_t in_flight = 0;    ///< as in replay_plan, as far as seen
  bool in_flight_held = false;  ///< threads were idle because of it, so it is a bound
  bool round_robin = false;
  bool ordered = true;
  bool has_consumer = true;    ///< false: a batch is done after its last stage
  bool makes_itself = false;   ///< the consumer waits for the whole preprocessing of each batch
  bool on_demand = false;      ///< likewise, although another thread preprocesses
  bool cpu_known = false;      ///< whether CPU time was recorded
  std::optional<double> cpus;  ///< that it could use
  double items_per_batch = 1;  ///< units of the first stage per batch
  double achieved_per_s = 0;   ///< as in run_batches
  double steady_per_s = 0;

  /// Batches in flight per worker.
  std::size_t prefetch() const {
    return static_cast<std::size_t>(std::lround(static_cast<double>(in_flight) / items_per_batch /
                                                static_cast<double>(stages.front().threads)));
  }

  /// The number of threads of the first stage, or of its pool if it shares one.
  std::size_t workers() const {
    const recorded_stage& first = stages.front();
    return first.pool ? pools[*first.pool] : first.threads;
  }
};

/// A run that can be simulated, or the reason why it cannot.
struct recording {
  std::optional<recorded_pipeline> pipeline;
  std::string why_not;
};

/// @param run  read with run_parts::operations.
recording record_pipeline(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP
