// What is replayed: the work of a run, and who may do it when.
#ifndef LOTUS_TOOL_REPLAY_PLAN_HPP
#define LOTUS_TOOL_REPLAY_PLAN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace lotus::tool {

/// What a thread does in one go, whatever else runs. Times in ns.
struct work {
  double blocked_ns = 0;          ///< first
  double cpu_ns = 0;              ///< last, were it alone on the machine
  double served_blocked_ns = 0;   ///< in between, while it has one of replay_plan::servers
  double served_cpu_ns = 0;       ///< likewise, and then
  std::uint32_t let_through = 0;  ///< it is before its CPU time, so many times

  bool is_served() const noexcept { return served_blocked_ns > 0 || served_cpu_ns > 0; }
  bool has_phases() const noexcept { return is_served() || let_through > 0; }
};

/// A number that nothing reaches, so that a bound is compared in one way whether there is one or
/// not.
inline constexpr std::size_t unbounded = SIZE_MAX;

/// A stage of the pipeline, in the order in which units come to them.
struct planned_stage {
  std::size_t threads = 1;          ///< that work in it at once
  std::optional<std::size_t> pool;  ///< whose threads these are, where stages share them
  /// Units that it may have begun while the next stage, or the consumer, has not begun with them: a
  /// queue behind it and its threads hold no more.
  std::size_t most_ahead = unbounded;
};

/// A batch, or an item that goes into one.
struct planned_unit {
  std::uint32_t first_stage = 0;
  std::uint32_t end_stage = 0;          ///< behind its last one
  std::uint32_t first_work = 0;         ///< of replay_plan::works, one for each of its stages
  optional_index<std::uint32_t> batch;  ///< unit of the batch that an item goes into
  std::uint32_t items = 0;              ///< how many go into a batch
};

/// What the consumer does with a batch.
struct planned_use {
  double take_ns = 0;  ///< from when it is there, and the consumer waits for it, to its hand-over
  work step;           ///< behind it
};

/// Batches and items of an epoch. They begin in order; items stand before batches.
struct planned_epoch {
  std::uint32_t first_unit = 0;
  std::uint32_t first_batch = 0;  ///< unit
  std::uint32_t end_unit = 0;
  double pause_ns = 0;  ///< between the end of the last step of the epoch before and the begin
  double consumer_ready_ns = 0;           ///< it waits from then on; from the epoch's begin
  std::vector<double> threads_ready_ns;   ///< one for each of the first stage
  std::vector<std::uint32_t> hand_overs;  ///< batches in the order in which the consumer wants them
};

/// Speed of a thread while k are on the CPU: min(1, cpus / k), less the share that busy CPUs take
/// from each other: 1 / (1 + slowing * (min(k, cpus) - 1) / (cpus - 1)).
struct speed_law {
  double cpus = 0;     ///< 0: there is always one free
  double slowing = 0;  ///< of one thread by all other CPUs
  /// For so long a thread has a CPU while others wait for it, and for half of it a CPU that ran out
  /// of threads leaves those where they wait; 0: all go at once, each at its share.
  double turn_ns = 0;

  /// How much longer a thread takes while `busy` CPUs work, itself among them.
  double longer(double busy) const noexcept;
  /// Of its work a thread does in a ns while `running` threads want a CPU.
  double speed(double running) const noexcept;
};

struct replay_plan {
  std::vector<planned_stage> stages;  ///< none: the consumer makes its batches itself, in its steps
  std::vector<std::size_t> pools;     ///< threads of each
  std::vector<planned_unit> units;    ///< by epochs
  std::vector<work> works;
  std::vector<planned_use> uses;  ///< by unit; of items without meaning
  std::vector<planned_epoch> epochs;
  double turnaround_ns = 0;  ///< of a thread of the first stage, between two units
  std::size_t in_flight =
      unbounded;              ///< units of the first stage begun whose batch is not handed over
  double let_through_ns = 0;  ///< 0, or so far apart at least works begin that are let through
  std::size_t servers = unbounded;  ///< a lock is one, a device so many as it has channels
  bool round_robin = false;         ///< unit i is for thread i mod threads
  bool ordered = true;              ///< the consumer takes batches in their order only
  speed_law speed;
};

/// What came out of an epoch, or of several.
struct replay_result {
  double whole_ns = 0;       ///< from the begin to the end of the last step, pauses included
  double pauses_ns = 0;      ///< of it
  double hand_overs_ns = 0;  ///< from the first hand-over to the last
  double intervals = 0;      ///< between these
  double batches = 0;
  std::size_t most_out = 0;  ///< units begun and not handed over

  replay_result& operator+=(const replay_result& other) noexcept {
    whole_ns += other.whole_ns;
    pauses_ns += other.pauses_ns;
    batches += other.batches;
    hand_overs_ns += other.hand_overs_ns;
    intervals += other.intervals;
    most_out = std::max(most_out, other.most_out);
    return *this;
  }
  /// Batches per second as run_batches::achieved_per_s() tells.
  double per_s() const noexcept { return whole_ns > 0 ? batches * 1e9 / whole_ns : 0; }
  /// As run_batches::steady_per_s() tells; 0 below two batches.
  double steady_per_s() const noexcept {
    return hand_overs_ns > 0 ? intervals * 1e9 / hand_overs_ns : 0;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PLAN_HPP
