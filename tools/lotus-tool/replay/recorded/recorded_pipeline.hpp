// A run as a pipeline that can be replayed: what was done, by whom, and the rules that held.
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

/// The part of a unit's work that one operation did itself.
struct recorded_part {
  std::uint32_t work = 0;  ///< place in recorded_pipeline::works
  std::uint32_t name = 0;  ///< of run_data::names
  double cpu_ns = 0;
  double blocked_ns = 0;
  double queued_ns = 0;
};

struct recorded_stage {
  stage_id stage;
  std::string name;  ///< decoded, without its S; "preprocess"
  bool of_items = false;
  std::size_t threads = 1;
  std::optional<std::size_t> pool;
  std::size_t most_ahead = 0;  ///< as of planned_stage, that was seen
};

/// One loader of one run.
struct recorded_pipeline {
  std::vector<recorded_stage> stages;
  std::vector<std::size_t> pools;
  std::vector<planned_unit> units;  ///< by epochs, in each in the order in which they began
  std::vector<measured_work> works;
  std::deque<recorded_part> parts;  ///< by work; never copied to grow
  std::vector<shared_operation> shared;
  std::vector<double> takes_ns;      ///< by unit, as planned_use
  std::vector<measured_work> steps;  ///< by unit, as planned_use
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;
  std::size_t in_flight = 0;    ///< units of the first stage, as of replay_plan, that were seen
  bool in_flight_held = false;  ///< threads were idle because of it, so it is a bound
  bool round_robin = false;
  bool ordered = true;
  bool has_consumer = true;    ///< else batches leave with their last stage
  bool makes_itself = false;   ///< the consumer waits for all of each batch's preprocessing
  bool on_demand = false;      ///< likewise, though another thread does it
  bool cpu_known = false;      ///< what its threads did with their time was recorded
  std::optional<double> cpus;  ///< that it might use
  double items_per_batch = 1;  ///< units of the first stage for one batch
  double achieved_per_s = 0;   ///< as run_batches has it
  double steady_per_s = 0;

  /// Batches out at once for each worker.
  std::size_t prefetch() const {
    return static_cast<std::size_t>(std::lround(static_cast<double>(in_flight) / items_per_batch /
                                                static_cast<double>(stages.front().threads)));
  }

  /// Threads that units begin with: of the pool, where the first stage shares one.
  std::size_t workers() const {
    const recorded_stage& first = stages.front();
    return first.pool ? pools[*first.pool] : first.threads;
  }
};

/// A run whose batches are handed over, or why it cannot be replayed.
struct recording {
  std::optional<recorded_pipeline> pipeline;
  std::string why_not;
};

/// @param run  read with run_parts::operations.
recording record_pipeline(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECORDED_PIPELINE_HPP
