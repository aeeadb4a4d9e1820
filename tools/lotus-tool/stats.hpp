// lotus-tool stats: what every operation and every batch of a run cost.
#ifndef LOTUS_TOOL_STATS_HPP
#define LOTUS_TOOL_STATS_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "distribution.hpp"
#include "log_files.hpp"
#include "run_model.hpp"

namespace lotus::tool {

struct stats_options {
  std::vector<std::string> dirs;
  std::string prefix{default_prefix};
  bool json = false;
  bool remove_outliers = false;
  bool strict = false;
  bool quiet = false;
};

/// Figures of one operation.
struct op_stats {
  std::string name;  ///< with its S, decoded
  distribution time;
  double below_10ms = 0;   ///< share, 0..1
  double below_100us = 0;  ///< share, 0..1
};

/// Figures of one run, as in the table of quantities of the original's paper.
struct run_stats_result {
  std::string dir;
  std::vector<op_stats> ops;  ///< in order of first appearance
  distribution preprocess;
  distribution wait;  ///< out-of-order arrivals count as 0
  distribution delay;
  distribution step;
  double wait_above_500ms = 0;   ///< share of the waits
  double delay_above_500ms = 0;  ///< share of the delays
  std::uint64_t out_of_order = 0;
  std::vector<std::uint64_t> file_numbers;  ///< by batch_record::file
  run_batches batches{{}};
};

/// Reads one run. The durations of all operations are in memory meanwhile (8 bytes each).
run_stats_result collect_stats(const run_files& run, bool remove_outliers, diagnostics& said);

/// Prints the figures of every run in options.dirs. Returns the exit status; throws input_error.
int run_stats(const stats_options& options, std::ostream& out, std::ostream& err);

void print_stats_json(const std::vector<run_stats_result>& runs, std::ostream& out);
void print_stats_table(const std::vector<run_stats_result>& runs, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_STATS_HPP
