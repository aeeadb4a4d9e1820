// lotus-tool stats: prints the cost of every operation and every batch of a run.
#ifndef LOTUS_TOOL_COMMANDS_STATS_STATS_HPP
#define LOTUS_TOOL_COMMANDS_STATS_STATS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/folder/log_files.hpp"
#include "model/figures.hpp"
#include "model/pipeline/counters_over_time.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "model/stage_stats.hpp"
#include "verdict/check.hpp"

namespace lotus::tool {

enum class stats_form : std::uint8_t { table, json, csv, profile };
enum class stats_order : std::uint8_t {
  logged,
  name,
  count,
  mean,
  p50,
  p90,
  p99,
  max,
  total,
  self
};

struct stats_options {
  std::vector<std::string> dirs;
  std::string prefix{default_prefix};
  stats_form form = stats_form::table;
  stats_order order = stats_order::logged;  ///< of the operations; numbers in descending order
  std::optional<std::size_t> limit;         ///< maximum number of operations
  std::size_t skip_batches = 0;             ///< at the beginning of every epoch
  std::size_t slowest = 3;     ///< number of slowest items that are shown with their stages
  bool memory = false;         ///< also show allocations in the table
  bool per_worker = false;     ///< also show every worker in the table
  bool group_by_args = false;  ///< treat each text of arguments as an operation of its own
  bool remove_outliers = false;
  bool strict = false;
  bool quiet = false;
};

/// Statistics of one operation, and what each worker spent on it.
struct op_stats : figures {
  std::vector<worker_share> by_file;
};

/// Statistics of one run, as in the table of quantities in the paper of the original tool.
struct run_stats_result {
  run_data run;               ///< without its operations
  std::vector<check> checks;  ///< failed checks
  std::vector<op_stats> ops;
  std::vector<figures> aggregated;  ///< counted but not recorded, in the order of the operations
  std::vector<figures> quantities;  ///< by quantity; out-of-order arrivals count as a wait of 0
  std::size_t batch_count = 0;      ///< without skipped batches
  std::uint64_t out_of_order = 0;   ///< number of these batches that arrived out of order
  std::vector<stage_stats> stages;  ///< empty if no stage is named: batches of workers only
  std::vector<item_stats> items;    ///< empty if no stage is named
  std::vector<async_stats> async;
  std::vector<counter_figures> counters;

  const figures& of(quantity q) const { return quantities[static_cast<std::size_t>(q)]; }
  std::vector<operation_calls> calls_of_operations() const;
};

/// Collects the statistics of one run, which must outlive the result. Throws input_error.
run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostic_log& diagnostics);

/// The batches that one log's thread preprocessed.
struct worker_batches {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};
worker_batches batches_of_worker(const run_stats_result& run, std::size_t file);

/// Prints the statistics of every run in options.dirs. Returns the exit status; throws input_error.
int run_stats(const stats_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_HPP
