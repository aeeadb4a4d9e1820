// The input of a simulation: the work of a run, and the rules that decide which thread does it
// when.
#ifndef LOTUS_TOOL_REPLAY_PLAN_HPP
#define LOTUS_TOOL_REPLAY_PLAN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace lotus::tool {

/// The work of one thread on one unit in one stage, independent of the machine's load. Times in ns.
struct work {
  double blocked_ns = 0;          ///< at the beginning
  double cpu_ns = 0;              ///< at the end, if the thread were alone on the machine
  double served_blocked_ns = 0;   ///< in between, while it occupies one of replay_plan::servers
  double served_cpu_ns = 0;       ///< likewise, after served_blocked_ns
  std::uint32_t let_through = 0;  ///< how often it passes the rate limit before its CPU time

  bool is_served() const noexcept { return served_blocked_ns > 0 || served_cpu_ns > 0; }
  bool has_phases() const noexcept { return is_served() || let_through > 0; }
};

/// An unreachable number, so that code compares with a bound in the same way if there is none.
inline constexpr std::size_t unbounded = SIZE_MAX;

/// A stage of the pipeline. Stages are in the order in which units pass through them.
struct planned_stage {
  std::size_t threads = 1;          ///< the maximum that work in it at once
  std::optional<std::size_t> pool;  ///< the pool that has these threads, if stages share them
  /// The maximum number of units that it has begun and that the next stage, or the consumer, has
  /// not: what its threads and the queue after it can hold.
  std::size_t most_ahead = unbounded;
};

/// A batch, or an item that goes into one.
struct planned_unit {
  std::uint32_t first_stage = 0;
  std::uint32_t end_stage = 0;          ///< one past its last stage
  std::uint32_t first_work = 0;         ///< index in replay_plan::works; one for each of its stages
  optional_index<std::uint32_t> batch;  ///< for an item: the unit of its batch
  std::uint32_t items = 0;              ///< for a batch: the number of its items
};

/// What the consumer does with a batch.
struct planned_use {
  /// From when the batch is ready and the consumer waits for it until it is received.
  double take_ns = 0;
  work step;  ///< after that
};

/// The batches and items of an epoch, in the order in which they begin; items come before batches.
struct planned_epoch {
  std::uint32_t first_unit = 0;
  std::uint32_t first_batch = 0;  ///< index of the first unit that is a batch
  std::uint32_t end_unit = 0;
  double pause_ns = 0;  ///< from the end of the previous epoch's last step to the begin of this one
  double consumer_ready_ns = 0;          ///< when its first wait begins, since the epoch's begin
  std::vector<double> threads_ready_ns;  ///< for each thread of the first stage
  /// Batches in the order in which the consumer receives them.
  std::vector<std::uint32_t> hand_overs;
};

/// The speed of a thread while k threads are runnable: min(1, cpus / k), reduced by what busy CPUs
/// take from each other: 1 / (1 + slowing * (min(k, cpus) - 1) / (cpus - 1)).
struct speed_law {
  double cpus = 0;     ///< 0: there is always a free CPU
  double slowing = 0;  ///< slowdown of a thread if all other CPUs are busy
  /// How long a thread keeps a CPU that others wait for. A CPU without threads leaves other CPUs'
  /// waiting threads there for half of this time. 0: all threads run at once, each at its share.
  double turn_ns = 0;

  /// The factor by which a thread takes longer while `busy` CPUs work, including its own.
  double longer(double busy) const noexcept;
  /// The work that a thread does per ns while `running` threads are runnable.
  double speed(double running) const noexcept;
};

struct replay_plan {
  /// None: the consumer builds its batches itself, in its steps.
  std::vector<planned_stage> stages;
  std::vector<std::size_t> pools;   ///< number of threads of each pool
  std::vector<planned_unit> units;  ///< ordered by epoch
  std::vector<work> works;
  std::vector<planned_use> uses;  ///< by unit; unused for items
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;           ///< time of a thread of the first stage between two units
  std::size_t in_flight = unbounded;  ///< the maximum number of units begun in the first stage
                                      ///< whose batch is not received yet
  double let_through_ns = 0;          ///< 0, or the minimum interval of the rate limit
  std::size_t servers = unbounded;    ///< 1 for a lock, the number of channels for a device
  bool round_robin = false;           ///< thread i mod threads works on unit i
  bool ordered = true;                ///< the consumer receives batches only in their order
  speed_law speed;
};

/// The result for one epoch or several.
struct replay_result {
  double whole_ns = 0;       ///< from the begin to the end of the last step, including pauses
  double pauses_ns = 0;      ///< the part of whole_ns that is pauses
  double hand_overs_ns = 0;  ///< from the first reception of a batch to the last
  double intervals = 0;      ///< number of intervals between receptions
  double batches = 0;
  std::size_t most_out = 0;  ///< the maximum number of units begun and not received

  replay_result& operator+=(const replay_result& other) noexcept {
    whole_ns += other.whole_ns;
    pauses_ns += other.pauses_ns;
    batches += other.batches;
    hand_overs_ns += other.hand_overs_ns;
    intervals += other.intervals;
    most_out = std::max(most_out, other.most_out);
    return *this;
  }
  /// Batches per second, defined as in run_batches::achieved_per_s().
  double per_s() const noexcept { return whole_ns > 0 ? batches * 1e9 / whole_ns : 0; }
  /// Defined as in run_batches::steady_per_s(); 0 with fewer than two batches.
  double steady_per_s() const noexcept {
    return hand_overs_ns > 0 ? intervals * 1e9 / hand_overs_ns : 0;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PLAN_HPP
