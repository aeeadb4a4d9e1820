// The input of a simulation: the work of a run, and the rules by which threads take up this work.
#ifndef LOTUS_TOOL_REPLAY_PLAN_HPP
#define LOTUS_TOOL_REPLAY_PLAN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/statistics/trend.hpp"

namespace lotus::tool {

/// The work of one thread on one unit (a batch or an item) in one stage, as if no other thread used
/// the machine. It has up to three phases: first the thread is blocked; then it is served, for
/// example by a lock or a device; then it runs on a CPU.
struct work {
  double blocked_ns = 0;  ///< blocked time in the first phase, in ns
  double cpu_ns = 0;      ///< CPU time in the last phase, in ns
  /// Blocked time in the second phase, in ns; this phase occupies one of replay_plan::servers.
  double served_blocked_ns = 0;
  double served_cpu_ns = 0;  ///< CPU time in the second phase, in ns, after served_blocked_ns
  /// How often the work passes the rate limit (let_through_ns of the plan) before the last phase.
  std::uint32_t let_through = 0;

  bool is_served() const noexcept { return served_blocked_ns > 0 || served_cpu_ns > 0; }
  bool has_phases() const noexcept { return is_served() || let_through > 0; }
};

/// The value of a limit that does not exist: larger than any count, so comparisons work as usual.
inline constexpr std::size_t unbounded = SIZE_MAX;

/// A stage of the pipeline. Stages are in the order in which units pass through them.
struct planned_stage {
  std::size_t threads = 1;  ///< maximum number of threads that work in the stage simultaneously
  /// Index in replay_plan::pools, if the stage shares the threads of a pool; otherwise missing.
  std::optional<std::size_t> pool;
  /// The maximum number of units that this stage has begun and that the next stage, or the
  /// consumer, has not begun yet. They are in the threads of this stage and in the queue after it.
  std::size_t max_ahead = unbounded;
};

/// A batch, or an item that becomes part of a batch.
struct planned_unit {
  std::uint32_t first_stage = 0;
  std::uint32_t end_stage = 0;  ///< index of the unit's last stage, plus 1
  /// Index in replay_plan::works of the first work; there is one work for each of the unit's
  /// stages.
  std::uint32_t first_work = 0;
  optional_index<std::uint32_t> batch;  ///< for an item: index in replay_plan::units of its batch
  std::uint32_t items = 0;              ///< for a batch: the number of its items
};

/// The consumer's work on a batch.
struct planned_use {
  /// Time to receive the batch if it is ready while the consumer waits for it, in ns.
  double take_ns = 0;
  work step;  ///< the consumer's work between receiving the batch and waiting for the next one
};

/// The batches and items of an epoch, in the order in which work on them begins; items come before
/// batches.
struct planned_epoch {
  std::uint32_t first_unit = 0;
  std::uint32_t first_batch = 0;  ///< index of the first unit that is a batch
  std::uint32_t end_unit = 0;
  /// Time from the end of the previous epoch's last step to the start of this epoch.
  double pause_ns = 0;
  /// Time from the epoch's start to the consumer's first wait.
  double consumer_ready_ns = 0;
  /// For each thread of the first stage: the time from the epoch's start until the thread is ready.
  std::vector<double> threads_ready_ns;
  /// The batches in the order in which the consumer receives them.
  std::vector<std::uint32_t> deliveries;
};

/// The rule for the speed of a thread while k threads are runnable: min(1, cpus / k), divided by
/// 1 + slowing * (min(k, cpus) - 1) / (cpus - 1), because busy CPUs slow each other down.
struct speed_law {
  double cpus = 0;     ///< number of CPUs; 0 means that a CPU is always free
  double slowing = 0;  ///< relative increase of a thread's CPU time if all other CPUs are busy
  /// How long a thread keeps a CPU while other threads wait for that CPU (its time slice). A CPU
  /// without threads waits for half of this time before it takes a waiting thread from another CPU.
  /// 0 means that all threads of a CPU run at the same time and share its speed.
  double turn_ns = 0;

  /// Returns the factor by which a thread takes longer if `busy` CPUs work, including its own CPU.
  double longer(double busy) const noexcept;
  /// Returns the work that a thread does per ns while `running` threads are runnable.
  double speed(double running) const noexcept;
};

struct replay_plan {
  /// The stages. If there are none, the consumer builds its batches itself during its steps.
  std::vector<planned_stage> stages;
  std::vector<std::size_t> pools;   ///< number of threads of each pool
  std::vector<planned_unit> units;  ///< all batches and items, sorted by epoch
  std::vector<work> works;
  std::vector<planned_use> uses;  ///< the consumer's work on each batch, indexed by unit
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;  ///< time in ns that a first-stage thread needs between two units
  /// Maximum number of units that the first stage has begun and the consumer has not received yet.
  std::size_t in_flight = unbounded;
  /// Maximum number of units that the first stage has begun and the last stage has not finished
  /// yet.
  std::size_t unfinished = unbounded;
  double let_through_ns = 0;  ///< minimum interval of the rate limit in ns; 0: no rate limit
  /// How many threads can be served simultaneously: 1 by a lock, several by some devices.
  std::size_t servers = unbounded;
  bool round_robin = false;  ///< whether thread i mod (number of threads) works on unit i
  bool ordered = true;  ///< whether the consumer receives batches only in the order of deliveries
  speed_law speed;

  /// Returns the CPU time of all works and steps, in ns.
  double cpu_ns() const {
    double sum_ns = 0;
    for (const work& w : works) sum_ns += w.cpu_ns + w.served_cpu_ns;
    for (const planned_use& u : uses) sum_ns += u.step.cpu_ns + u.step.served_cpu_ns;
    return sum_ns;
  }
};

/// The result of a simulation, for one epoch or several.
struct replay_result {
  double whole_ns = 0;       ///< time in ns from the start to the end of the last step, with pauses
  double pauses_ns = 0;      ///< the pauses between epochs, in ns; part of whole_ns
  double deliveries_ns = 0;  ///< time between an epoch's first and last reception of a batch, in ns
  double intervals = 0;      ///< number of intervals between receptions in deliveries_ns
  double batches = 0;
  trend receptions;         ///< the times of the receptions, one group for each epoch
  std::size_t max_out = 0;  ///< the maximum number of units that were in flight at the same time

  replay_result& operator+=(const replay_result& other) noexcept {
    whole_ns += other.whole_ns;
    pauses_ns += other.pauses_ns;
    batches += other.batches;
    deliveries_ns += other.deliveries_ns;
    intervals += other.intervals;
    receptions += other.receptions;
    max_out = std::max(max_out, other.max_out);
    return *this;
  }
  /// Makes the simulated run last at least `least_ns`, by slowing down everything but the pauses.
  void last_at_least(double least_ns) noexcept {
    const double work_ns = whole_ns - pauses_ns;
    if (least_ns <= whole_ns || work_ns <= 0) return;
    const double longer = (least_ns - pauses_ns) / work_ns;
    whole_ns = least_ns;
    deliveries_ns *= longer;
    receptions.stretch(longer);
  }
  /// Returns batches per second, defined as in run_batches::achieved_per_s().
  double per_s() const noexcept { return whole_ns > 0 ? batches * 1e9 / whole_ns : 0; }
  /// Returns batches per second, defined as in run_batches::steady_per_s(); 0 with fewer than two
  /// batches.
  double steady_per_s() const noexcept {
    return deliveries_ns > 0 ? intervals * 1e9 / deliveries_ns : 0;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PLAN_HPP
