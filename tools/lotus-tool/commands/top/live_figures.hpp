// What the last seconds of a run were, in numbers.
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
  std::string name;  ///< decoded, without its S
  std::uint64_t calls = 0;
  std::int64_t self_ns = 0;  ///< of all calls, without what ran inside
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
  double stretch_s = 0;     ///< in which these calls were
  bool aggregated = false;  ///< counted by its process, not recorded: between two looks
  std::size_t threads = 0;  ///< that called it; 0: not known
};

enum class live_order : std::uint8_t { self, calls, total, max };

/// What operations are in that order by, the largest first: per second, as not all are told of the
/// same stretch.
double value_of(const live_operation& op, live_order order);

struct live_stage {
  std::string name;
  std::size_t threads = 0;
  double per_s = 0;  ///< batches or items that it finished
  slot_shares shares;
  /// Finished, and not known to be taken on: with what the next one works on at this moment.
  /// Missing where nothing behind it tells.
  std::optional<std::size_t> queued;
};

struct live_batch {
  std::int64_t number = 0;
  std::int64_t made_ns = 0;             ///< from the start of its making to the end
  std::optional<std::int64_t> wait_ns;  ///< of the consumer
  std::optional<std::int64_t> handed_over_ns;
};

struct live_figures {
  double window_s = 0;      ///< less than asked for where the run is younger
  std::size_t batches = 0;  ///< that were handed over
  double batches_per_s = 0;
  std::optional<double> wait_share;        ///< of the consumer's time; missing without waits
  std::size_t ready = 0;                   ///< made, and not handed over
  double operations_per_s = 0;             ///< recorded ones
  double aggregated_per_s = 0;             ///< calls that were not
  std::vector<live_operation> operations;  ///< in order of first appearance
  std::vector<live_stage> stages;          ///< as a batch comes to them
  std::vector<live_batch> slowest;         ///< the slowest first
  std::vector<counter_figures> counters;
  std::optional<std::int64_t> last_batch_ns;   ///< when the last one was handed over
  std::optional<std::int64_t> usual_gap_ns;    ///< between two of them, median
  std::optional<std::int64_t> longest_gap_ns;  ///< between two of them
};

/// @param run       of a stretch of time, without batches that were made before; operations are
/// told
///                  where read with run_parts::totals.
/// @param consumer  of all batches.
/// @param begin_ns  of that stretch; the records may begin later.
live_figures figures_of_stretch(const run_data& run, const consumer_times& consumer,
                                std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP
