// Defines a simulation, its input and its result. The input is the work of a run, and the rules
// by which threads begin this work.
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

/// The work of one thread on one unit (a batch or an item) in one stage, without the time in which
/// it waits for other threads. A work has up to three phases: first the thread is blocked; then a
/// lock or device serves it; then it runs on a CPU. The first and the last phase may alternate in
/// several rounds of equal length.
struct work {
  double blocked_ns = 0;  ///< blocked time in the first phase, in ns
  double cpu_ns = 0;      ///< CPU time in the last phase, in ns
  /// Blocked time in the second phase, in ns. During this phase the thread occupies one of the
  /// replay_plan::servers, which model a lock or device.
  double served_blocked_ns = 0;
  double served_cpu_ns = 0;  ///< CPU time in the second phase, in ns, after served_blocked_ns
  /// How often the work must pass the rate limit (replay_plan::let_through_ns) before the last
  /// phase.
  std::uint32_t let_through = 0;
  std::uint32_t rounds = 1;  ///< number of rounds; the work is served only in the first one

  /// Returns the number of rounds to simulate: 1 if one of the phases that alternate is missing.
  std::uint32_t rounds_left() const noexcept { return blocked_ns > 0 && cpu_ns > 0 ? rounds : 1; }
  bool is_served() const noexcept { return served_blocked_ns > 0 || served_cpu_ns > 0; }
};

/// The value of a limit that does not exist. It is larger than any count, so comparisons with it
/// need no special case.
inline constexpr std::size_t unbounded = SIZE_MAX;

/// A stage of the pipeline. replay_plan lists the stages in the order of processing.
struct planned_stage {
  std::size_t threads = 1;  ///< maximum number of threads that work in the stage simultaneously
  /// Index in replay_plan::pools if the stage shares its threads with other stages; else nullopt.
  std::optional<std::size_t> pool;
  /// Maximum number of units (batches or items) that this stage has begun and that the next stage,
  /// or the consumer, has not begun yet. They are in progress in this stage or in the queue after
  /// it.
  std::size_t max_ahead = unbounded;
};

/// A batch, or an item that becomes part of a batch.
struct planned_unit {
  std::uint32_t first_stage = 0;
  std::uint32_t end_stage = 0;  ///< index of the unit's last stage, plus 1
  /// Index in replay_plan::works of the work in the first stage. The work in the other stages
  /// follows.
  std::uint32_t first_work = 0;
  /// For an item: index in replay_plan::units of the batch that contains it.
  optional_index<std::uint32_t> batch;
  std::uint32_t items = 0;  ///< for a batch: the number of its items
};

/// The consumer's work on a batch.
struct planned_use {
  /// Time in ns from the moment when a batch is ready until the waiting consumer has received it.
  double take_ns = 0;
  work step;  ///< the consumer's work between receiving the batch and waiting for the next one
};

/// The items and batches of an epoch: first all items, then all batches, each in the order in which
/// work on them begins.
struct planned_epoch {
  std::uint32_t first_unit = 0;
  std::uint32_t first_batch = 0;  ///< index of the first unit that is a batch
  std::uint32_t end_unit = 0;
  /// Time from the end of the previous epoch's last step to the start of this epoch.
  double pause_ns = 0;
  /// Time from the epoch's start to the start of the consumer's first wait.
  double consumer_ready_ns = 0;
  /// For each thread of the first stage: the time from the epoch's start until the thread is ready.
  std::vector<double> threads_ready_ns;
  /// The batches in the order in which the consumer receives them.
  std::vector<std::uint32_t> deliveries;
};

/// The rule for how fast threads run. While k threads are runnable, the speed of each of them is
/// min(1, cpus / k) divided by 1 + slowing * (min(k, cpus) - 1) / (cpus - 1), because busy CPUs
/// slow each other down.
struct speed_law {
  double cpus = 0;     ///< number of CPUs; 0 means that every thread always has a CPU
  double slowing = 0;  ///< relative increase of a thread's CPU time if all other CPUs are busy
  /// The time slice in ns: how long a thread keeps its CPU while other threads wait for it. A CPU
  /// without threads waits for half of this time before it takes a waiting thread from another CPU.
  /// If it is 0, all threads of a CPU run at the same time and share its speed.
  double turn_ns = 0;
  /// Number of threads of other programs that always want a CPU. Threads share the CPUs evenly (Li
  /// et al., "Efficient and scalable multiprocessor fair scheduling", PPoPP 2009).
  double others = 0;

  /// Returns the factor by which work takes longer while `busy` CPUs are busy, including its own
  /// CPU.
  double longer(double busy) const noexcept;
  /// Returns how much work a thread does per ns while `running` threads are runnable.
  double speed(double running) const noexcept;
};

struct replay_plan {
  /// The stages. Empty if the consumer builds its batches itself; the steps then include that work.
  std::vector<planned_stage> stages;
  std::vector<std::size_t> pools;   ///< number of threads of each pool
  std::vector<planned_unit> units;  ///< all batches and items, sorted by epoch
  std::vector<work> works;
  std::vector<planned_use> uses;  ///< the consumer's work on each batch, indexed by unit
  std::vector<planned_epoch> epochs;
  /// Time in ns that a thread of the first stage needs between two units.
  double turnaround_ns = 0;
  /// Maximum number of units that the first stage has begun and the consumer has not received yet.
  std::size_t in_flight = unbounded;
  /// Maximum number of units that the first stage has begun and the last stage has not finished
  /// yet.
  std::size_t unfinished = unbounded;
  /// Minimum interval in ns between calls of the operation with a rate limit; 0: no limit.
  double let_through_ns = 0;
  /// How many threads a lock or device can serve at the same time: 1 for a lock.
  std::size_t servers = unbounded;
  /// Whether unit i is always processed by thread i mod (number of threads).
  bool round_robin = false;
  /// Whether each finished item becomes part of the earliest batch that is not full, instead of the
  /// batch to which it belonged in the run.
  bool ready_samples = false;
  bool ordered = true;  ///< whether the consumer receives batches only in the order of deliveries
  /// The units divided by the units of the recorded run, before a change of the batch size.
  double share_of_run = 1;
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
  double whole_ns = 0;   ///< time in ns from the start to the end of the last step, with pauses
  double pauses_ns = 0;  ///< the pauses between epochs, in ns; included in whole_ns
  /// Sum over all epochs of the time from the first to the last received batch, in ns.
  double deliveries_ns = 0;
  /// Number of intervals between received batches that deliveries_ns consists of.
  double intervals = 0;
  double batches = 0;
  trend receptions;    ///< the times when batches were received, one group for each epoch
  double busy_ns = 0;  ///< how long the CPUs would need for all CPU time if all were busy, in ns
  std::size_t max_out = 0;    ///< the maximum number of units in flight at the same time
  double server_wait_ns = 0;  ///< how long all works waited for one of replay_plan::servers, in ns

  replay_result& operator+=(const replay_result& other) noexcept {
    whole_ns += other.whole_ns;
    pauses_ns += other.pauses_ns;
    batches += other.batches;
    deliveries_ns += other.deliveries_ns;
    intervals += other.intervals;
    receptions += other.receptions;
    busy_ns += other.busy_ns;
    max_out = std::max(max_out, other.max_out);
    server_wait_ns += other.server_wait_ns;
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
  /// Returns batches per second, as run_batches::achieved_per_s() does for a recorded run.
  double per_s() const noexcept { return whole_ns > 0 ? batches * 1e9 / whole_ns : 0; }
  /// Returns batches per second in steady state, as run_batches::steady_per_s() does; 0 if there
  /// are fewer than two batches.
  double steady_per_s() const noexcept {
    return deliveries_ns > 0 ? intervals * 1e9 / deliveries_ns : 0;
  }
};

/// Simulates all epochs one after the other. The same plan always gives the same result. The time
/// is O(n log t) for n units (batches and items) and t threads.
replay_result replay(const replay_plan& plan);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PLAN_HPP
