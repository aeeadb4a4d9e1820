// Computes the numbers that `top` shows about a run's last seconds.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "log/folder/log_files.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/pipeline/slot_shares.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct consumer_times {
  std::vector<std::int64_t> received_ns;  ///< times when batches were received, in ascending order
  /// The share of its time that the consumer waited; nullopt if there were no waits.
  std::optional<double> wait_share;
};

/// Returns when the consumer received batches, and how much it waited, since `begin_ns`. Batches
/// that were preprocessed before `begin_ns` but received later count too.
consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns);

struct live_operation {
  std::string name;  ///< decoded name, without the S that it has in logs
  std::uint64_t calls = 0;
  /// Sum of the self times of all calls; self times exclude nested operations.
  std::int64_t self_ns = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
  double interval_s = 0;  ///< length in seconds of the interval in which these calls happened
  /// Whether this is an aggregated operation, whose numbers cover the last `interval_s` seconds.
  bool aggregated = false;
  std::size_t threads = 0;  ///< number of threads that called the operation; 0: unknown
};

enum class live_order : std::uint8_t { self, calls, total, max };

/// The screen shows at most this many operations.
inline constexpr std::size_t most_operations = 100;

/// Returns the value by which operations are sorted; the largest comes first. All values except the
/// maximum are per second, because operations may be measured over different intervals.
double value_of(const live_operation& op, live_order order);

struct live_stage {
  std::string name;
  std::size_t threads = 0;
  double per_s = 0;  ///< batches or items that the stage finished per second
  slot_shares shares;
  /// Number of batches or items that this stage has finished, and that wait for the next stage or
  /// are being processed by it, as far as the records show. Nullopt if no record shows what follows
  /// the stage.
  std::optional<std::size_t> queued;
};

struct live_batch {
  std::int64_t number = 0;
  std::int64_t preprocessing_ns = 0;    ///< time to preprocess the batch
  std::optional<std::int64_t> wait_ns;  ///< the consumer's wait for the batch in ns
  std::optional<std::int64_t> received_ns;
  std::int64_t looked_ns = 0;  ///< time of the update, in ns since 1970
};

struct live_figures {
  double window_s = 0;      ///< length in seconds; shorter than requested if the run began later
  std::size_t batches = 0;  ///< number of batches that the consumer received
  double batches_per_s = 0;
  /// The share of its time that the consumer waited; nullopt if there were no waits.
  std::optional<double> wait_share;
  std::size_t ready = 0;        ///< number of batches that were preprocessed but not yet received
  double operations_per_s = 0;  ///< recorded operations per second
  double aggregated_per_s = 0;  ///< aggregated calls per second
  /// Those operations that are among the first `most_operations` in one of the orders, in order of
  /// first appearance; all aggregated operations are added to them.
  std::vector<live_operation> operations;
  std::vector<live_stage> stages;   ///< stages in the order in which batches reach them
  std::vector<live_batch> slowest;  ///< the slowest batches, with the slowest one first
  std::vector<counter_figures> counters;
  std::optional<std::int64_t> last_batch_ns;   ///< when the last batch was received
  std::optional<std::int64_t> usual_gap_ns;    ///< median time between two received batches
  std::optional<std::int64_t> longest_gap_ns;  ///< maximum time between two received batches
};

/// Computes the numbers for a time interval.
/// @param run  the records of this interval, without batches that were preprocessed before it.
///   Contains operations only if it was read with run_parts::totals.
/// @param consumer  the consumer's times in this interval, also of batches that were preprocessed
///   before it.
/// @param begin_ns  beginning of the interval; the first record may be later.
live_figures figures_of_interval(const run_data& run, const consumer_times& consumer,
                                 std::int64_t begin_ns, std::int64_t end_ns);

/// Describe the columns of tables.
const description<live_operation>& description_of(const live_operation*);
const description<live_stage>& description_of(const live_stage*);
const description<live_batch>& description_of(const live_batch*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_FIGURES_HPP
