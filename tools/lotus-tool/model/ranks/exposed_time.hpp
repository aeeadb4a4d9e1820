// Computes the exposed preparation time of a training on several ranks, and which rank causes it.
#ifndef LOTUS_TOOL_MODEL_RANKS_EXPOSED_TIME_HPP
#define LOTUS_TOOL_MODEL_RANKS_EXPOSED_TIME_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// One batch of a rank, in ns.
struct rank_step {
  double wait_ns = 0;   ///< the consumer's wait for the batch
  double ready_ns = 0;  ///< part of it in which the batch was ready, but not received
  double build_ns = 0;  ///< time that workers or stages spent on the batch
  double step_ns = 0;   ///< the step after the wait; 0 for the last one of an epoch
};

/// What is known about one rank.
struct rank_times {
  std::string name;  ///< such as "rank 3"
  std::string host;
  std::string dir;
  std::vector<std::vector<rank_step>> epochs;
  std::size_t workers = 0;       ///< number of threads that built batches
  std::optional<cpu_split> cpu;  ///< how the time of all builds was spent; nullopt if unknown
};

/// Reads the steps of a rank from its logs; `name`, `host` and `dir` remain empty.
/// @param skip  the number of batches to leave out at the beginning of each epoch.
rank_times times_of_rank(const run_data& run, std::size_t skip);

/// Means over the steps of a rank, in ns.
struct exposed_rank {
  std::string name;
  std::string host;
  std::string dir;
  rank_step mean;
  double longest_share = 0;  ///< share (0..1) of the steps in which it waited longest
  /// How much shorter the mean exposed time would be if, whenever this rank waited longest, it had
  /// waited as long as the next one.
  double caused_ns = 0;
  std::size_t workers = 0;
  std::optional<double> cpu_ns;      ///< part of build_ns on a CPU
  std::optional<double> queue_ns;    ///< part of build_ns waiting for a CPU
  std::optional<double> blocked_ns;  ///< part of build_ns blocked: disk, network, locks
};

/// In which part of its loader a rank differs from the others.
enum class rank_link : std::uint8_t { workers, cpu, queue, blocked, build, hand_over };

/// The exposed preparation time of ranks that step together: in each step, the longest wait of a
/// rank for its batch, because the others then wait for this rank.
struct exposed_time {
  std::string loader;  ///< "" for the default loader
  std::size_t steps = 0;
  double exposed_ns = 0;              ///< mean over the steps
  double cycle_ns = 0;                ///< mean time of a step with its wait
  bool in_step = true;                ///< whether the ranks end their steps together
  std::optional<std::size_t> cause;   ///< the rank that causes it, if this is no chance
  rank_link link = rank_link::build;  ///< what is slow there
  std::vector<exposed_rank> ranks;
  exposed_rank others;  ///< the median of each value over the ranks other than the cause
};

/// Compares ranks. The k-th batches of an epoch belong to one step.
///
/// The cause is the rank with the largest caused_ns, unless this is less than 1 % of the cycle or
/// may be chance. It is no chance if, step by step, the rank causes more than the rank after it, in
/// each fifth of the steps at least 0.4 of the mean, and if also what makes it wait (the time to
/// build or to hand over a batch) is longer than the median of the others. Steps that follow one
/// another are alike; both tests are therefore self-normalized, see is_above_zero(). A rank with
/// fewer workers than the median needs no second test.
exposed_time compare_exposed(const std::vector<rank_times>& ranks);

/// Returns whether the mean of a series is above 0 beyond chance, at a level of 5 % among `tests`
/// tests, however alike successive values are, if this does not last for most of the series. The
/// mean is divided by the size of the partial sums (Lobato, JASA 96, 2001; Shao, JRSS B 72, 2010).
bool is_above_zero(const std::vector<double>& series, std::size_t tests);

const description<exposed_time>& description_of(const exposed_time*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RANKS_EXPOSED_TIME_HPP
