// Computes the throughput of a trial in steady state.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_THROUGHPUT_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_THROUGHPUT_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "commands/tune/trial.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// A rate with its 90 % confidence interval.
struct throughput {
  double per_s = 0;
  double low = 0;
  double high = 0;
  std::size_t values = 0;  ///< number of batches, or of printed rates, that were counted
  double start_up_s = 0;   ///< time from the program's start to the first counted batch
};

/// The times in ns at which batches were received, ascending, for each epoch of each consumer.
using reception_times = std::vector<std::vector<double>>;

/// Returns the times when the consumers received batches or, in a run without a consumer, when
/// batches were finished.
reception_times receptions_of(const run_batches& batches);

/// Returns the throughput without start-up: the slope of a line that the class `trend` fits to the
/// times of the receptions.
/// The start-up ends where the mean of all later intervals between receptions has the smallest
/// estimated error, at the latest in the middle (MSER-5: White, "An effective truncation heuristic
/// for bias reduction in simulation output", Simulation 69, 1997). For the confidence interval, the
/// intervals after the start-up are divided into at most ten parts, and the means of the parts are
/// compared. Returns nullopt if there are fewer than min_counted batches.
/// @param begin_ns  when the program was started.
std::optional<throughput> steady_throughput(const reception_times& times, std::int64_t begin_ns);
inline constexpr std::size_t min_counted = 5;

/// Returns the mean of the second half of the printed rates; nullopt if there is none.
std::optional<throughput> printed_throughput(const std::vector<printed_rate>& rates);

/// Returns the throughput of several trials of the same configuration. For two or more, the
/// interval also covers the differences between trials.
throughput pooled(const std::vector<throughput>& trials);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_THROUGHPUT_HPP
