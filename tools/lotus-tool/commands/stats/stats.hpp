// lotus-tool stats: prints the cost of every operation and every batch of a run.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "accelerator/analysis.hpp"
#include "describe/described.hpp"
#include "findings/checks/check.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/folder/log_files.hpp"
#include "model/figures.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "model/stage_stats.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/stacks/snapshot_threads.hpp"

namespace lotus::tool {

class field;

enum class stats_form : std::uint8_t { table, json, csv, profile };
struct stats_options {
  std::vector<std::string> dirs;
  std::string prefix{default_prefix};
  stats_form form = stats_form::table;
  /// Order of the operations: "logged", "name", or the title of a figure, of which the largest
  /// comes first.
  std::string order = "logged";
  std::optional<std::size_t> limit;  ///< maximum number of operations to show
  std::size_t skip_batches = 0;  ///< number of batches to ignore at the beginning of every epoch
  /// Number of slowest items that are shown with their stages. If the user has not set it, the
  /// table shows no item with its stages.
  std::optional<std::size_t> slowest;
  bool memory = false;      ///< whether the table also shows allocations
  bool per_worker = false;  ///< whether the table also shows every worker
  /// Whether calls with different arguments count as different operations.
  bool group_by_args = false;
  bool remove_outliers = false;
  bool strict = false;
  bool quiet = false;
};

/// The statistics of one run, as in the table of quantities in the Lotus paper.
struct run_stats_result {
  run_data run;               ///< the run's data without the calls of operations
  std::vector<check> checks;  ///< the consistency checks that failed
  /// Indexes in run.ops of the operations to show, in the order of the output. Their statistics are
  /// computed when they are shown, because there may be a million operations.
  std::vector<std::uint32_t> shown_ops;
  std::size_t ops_left_out = 0;  ///< number of operations that a table leaves out
  /// Aggregated operations, in the order of the output.
  std::vector<figures> aggregated;
  /// Statistics of every quantity, such as the wait, in the order of the enumeration `quantity`.
  /// Batches that arrived out of order count with a wait of 0.
  std::vector<figures> quantities;
  std::size_t batch_count = 0;     ///< number of batches without the skipped ones
  std::uint64_t out_of_order = 0;  ///< number of these batches that arrived out of order
  /// Statistics of stages; empty if the program marks no stages, so that workers build whole
  /// batches.
  std::vector<stage_stats> stages;
  std::vector<item_stats> items;  ///< statistics of items; empty without stages
  std::vector<async_stats> async;
  std::vector<counter_figures> counters;
  run_blocked_on blocked_on;  ///< what threads waited for; empty if this was not recorded
  std::vector<snapshot_thread> threads;  ///< what all threads did; only if the run is a snapshot
  /// Results for the accelerator traces in the run's folder.
  std::vector<accelerator_analysis> accelerators;

  const figures& of(quantity q) const { return quantities[static_cast<std::size_t>(q)]; }
  const op_samples& op(std::size_t index) const { return run.ops[shown_ops[index]]; }
  std::vector<operation_calls> calls_of_operations() const;
  /// Returns how the run used the heap; nullopt if that was not recorded.
  std::optional<memory_stats> memory() const { return memory_of(run, calls_of_operations()); }
};

/// Returns the batches that the thread of one log preprocessed.
worker_share batches_of_worker(const run_stats_result& run, std::size_t file);

/// Returns the columns of a table of figures.
/// @param cpu  whether CPU time was measured.
std::vector<const field*> figure_columns(figure_output output, bool cpu);

/// Returns the words for stats_options::order.
std::vector<std::string> stats_orders();

void print_stats_csv(const std::vector<run_stats_result>& runs, std::ostream& out);
void print_stats_table(const std::vector<run_stats_result>& runs, const stats_options& options,
                       std::ostream& out);
/// Prints calls and times by name as Python's cProfile does, for stats_form::profile. Returns the
/// exit status.
int print_stats_profile(const stats_options& options, std::ostream& out, std::ostream& err);

/// What `lotus-tool stats --json` prints.
struct stats_output {
  std::vector<run_stats_result> runs;
};
const description<stats_output>& description_of(const stats_output*);
const description<worker_share>& description_of(const worker_share*);

/// Prints the statistics of every run in options.dirs. Returns the exit status; throws input_error.
int run_stats(const stats_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_HPP
