// lotus-tool stats: what every operation and every batch of a run cost.
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
  stats_order order = stats_order::logged;  ///< of the operations; figures fall
  std::optional<std::size_t> limit;         ///< only this many operations
  std::size_t skip_batches = 0;             ///< at the beginning of every epoch
  std::size_t slowest = 3;                  ///< so many items are told with what was done to them
  bool memory = false;                      ///< the table tells of allocations too
  bool per_worker = false;                  ///< the table tells every worker too
  bool group_by_args = false;               ///< an operation for each text of arguments
  bool remove_outliers = false;
  bool strict = false;
  bool quiet = false;
};

/// Figures of one operation, and what each worker spent on it.
struct op_stats : figures {
  std::vector<worker_share> by_file;
};

/// Figures of one run, as in the table of quantities of the original's paper.
struct run_stats_result {
  run_data run;               ///< without its operations
  std::vector<check> checks;  ///< that failed
  std::vector<op_stats> ops;
  std::vector<figures> aggregated;  ///< counted and not recorded, sorted as operations
  std::vector<figures> quantities;  ///< by quantity; out-of-order arrivals count as a wait of 0
  std::size_t batch_count = 0;      ///< without those that were skipped
  std::uint64_t out_of_order = 0;   ///< of these
  std::vector<stage_stats> stages;  ///< none where no stage is named: batches of workers only
  std::vector<item_stats> items;    ///< as stages
  std::vector<async_stats> async;
  std::vector<counter_figures> counters;

  const figures& of(quantity q) const { return quantities[static_cast<std::size_t>(q)]; }
  std::vector<operation_calls> calls_of_operations() const;
};

/// Figures of one run, which must outlive them. Throws input_error.
run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostic_log& diagnostics);

/// The batches that one log's thread preprocessed.
struct worker_batches {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};
worker_batches batches_of_worker(const run_stats_result& run, std::size_t file);

/// Prints the figures of every run in options.dirs. Returns the exit status; throws input_error.
int run_stats(const stats_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_STATS_STATS_HPP
