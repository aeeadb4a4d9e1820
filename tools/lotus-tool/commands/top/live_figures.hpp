// Computes the numbers that `top` shows of a run's last seconds.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/top/consumer_times.hpp"
#include "model/pipeline/counters_over_time.hpp"
#include "model/pipeline/slot_shares.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct live_operation {
  std::string name;  ///< decoded, without the S
  std::uint64_t calls = 0;
  std::int64_t self_ns = 0;  ///< sum over all calls, without nested operations
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
  double stretch_s = 0;     ///< length of the interval that contains these calls
  bool aggregated = false;  ///< only counted: the difference of two reads `stretch_s` apart
  std::size_t threads = 0;  ///< number of threads that called it; 0: unknown
};

enum class live_order : std::uint8_t { self, calls, total, max };

/// The value that operations are sorted by, the largest first. All but the maximum are per second,
/// because operations may be measured over different intervals.
double value_of(const live_operation& op, live_order order);

struct live_stage {
  std::string name;
  std::size_t threads = 0;
  double per_s = 0;  ///< batches or items that it finished per second
  slot_shares shares;
  /// Batches or items that the stage finished and that are not known to have left it, including
  /// those that the next stage works on now. Nullopt if no record shows what follows this stage.
  std::optional<std::size_t> queued;
};

struct live_batch {
  std::int64_t number = 0;
  std::int64_t made_ns = 0;             ///< preprocess time
  std::optional<std::int64_t> wait_ns;  ///< the consumer's wait
  std::optional<std::int64_t> handed_over_ns;
};

struct live_figures {
  double window_s = 0;      ///< less than requested if the run is younger
  std::size_t batches = 0;  ///< number of batches that the consumer received
  double batches_per_s = 0;
  std::optional<double> wait_share;        ///< of the consumer's time; nullopt without waits
  std::size_t ready = 0;                   ///< batches that were preprocessed but not yet received
  double operations_per_s = 0;             ///< recorded operations
  double aggregated_per_s = 0;             ///< calls that were only counted
  std::vector<live_operation> operations;  ///< in order of first appearance
  std::vector<live_stage> stages;          ///< in the order in which batches reach them
  std::vector<live_batch> slowest;         ///< the slowest first
  std::vector<counter_figures> counters;
  std::optional<std::int64_t> last_batch_ns;   ///< when the last batch was received
  std::optional<std::int64_t> usual_gap_ns;    ///< median time between two received batches
  std::optional<std::int64_t> longest_gap_ns;  ///< maximum time between two received batches
};

/// @param run  the records of a time range, without batches that were preprocessed before it. Has
///     operations only if it was read with run_parts::totals.
/// @param consumer  the times of all batches.
/// @param begin_ns  beginning of the range; its first record may be later.
live_figures figures_of_stretch(const run_data& run, const consumer_times& consumer,
                                std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP
