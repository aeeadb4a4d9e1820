// lotus-tool stats: what every operation and every batch of a run cost.
#ifndef LOTUS_TOOL_STATS_HPP
#define LOTUS_TOOL_STATS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "distribution.hpp"
#include "log_files.hpp"
#include "run_model.hpp"
#include "samples.hpp"

namespace lotus::tool {

enum class stats_form : std::uint8_t { table, json, csv };
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
  bool per_worker = false;                  ///< the table tells every worker too
  bool remove_outliers = false;
  bool strict = false;
  bool quiet = false;
};

/// Figures of one operation.
struct op_stats {
  std::string name;  ///< with its S, decoded
  distribution time;
  std::int64_t self_ns = 0;  ///< of the total, without what ran inside it
  double below_10ms = 0;     ///< share, 0..1
  double below_100us = 0;    ///< share, 0..1
  std::vector<worker_share> by_file;
};

/// Figures of one run, as in the table of quantities of the original's paper.
struct run_stats_result {
  std::string dir;
  std::vector<op_stats> ops;
  distribution preprocess;
  distribution wait;  ///< out-of-order arrivals count as 0
  distribution delay;
  distribution step;
  double wait_above_500ms = 0;   ///< share of the waits
  double delay_above_500ms = 0;  ///< share of the delays
  std::size_t batch_count = 0;   ///< without those that were skipped, as all above
  std::uint64_t out_of_order = 0;
  std::vector<std::uint64_t> file_numbers;  ///< by batch_record::file
  run_batches batches{{}};
};

/// Figures of one run. Throws input_error.
run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostics& said);

/// The batches that one log's thread preprocessed.
struct worker_batches {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};
worker_batches batches_of_worker(const run_stats_result& run, std::size_t file);

/// Prints the figures of every run in options.dirs. Returns the exit status; throws input_error.
int run_stats(const stats_options& options, std::ostream& out, std::ostream& err);

void print_stats_json(const std::vector<run_stats_result>& runs, std::ostream& out);
void print_stats_csv(const std::vector<run_stats_result>& runs, std::ostream& out);
void print_stats_table(const std::vector<run_stats_result>& runs, bool per_worker,
                       std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_STATS_HPP
