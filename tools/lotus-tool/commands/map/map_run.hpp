// lotus-tool map run: runs a probe program under a collector repeatedly, and builds a mapping.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "commands/map/map_build.hpp"

namespace lotus::tool {

struct map_run_options {
  std::string collector = "builtin";
  double rate_hz = 0;             ///< samples per second; 0: the collector's default
  std::vector<std::string> ops;   ///< operations to collect; empty: all
  double confidence = 0.75;       ///< probability of seeing a function at least once
  std::int64_t span_ns = 660000;  ///< time in ns that such a function takes in each run
  std::uint64_t runs = 0;         ///< number of runs; 0: calculated from `confidence` and `span_ns`
  std::string output;             ///< path of the mapping file; empty: only print the mapping
  std::string reports;  ///< folder of the raw reports; empty: a folder named after the output
  std::vector<std::string> program;
  print_as print = print_as::table;
  bool quiet = false;
};

/// Returns how many runs are needed to see a function of length f = `span_ns` with probability C =
/// `confidence`, if samples are s = `interval_ns` apart and start at a random time. This is the
/// smallest n with C <= 1 - (1 - f/s)^n (Lotus paper, LotusMap), at least 1. The probability to
/// miss the function may be up to 5 % larger than 1 - C. So the paper's example (f = 0.66 ms, s =
/// 10 ms, C = 0.75) yields n = 20 as in the paper, although 20 runs reach only 74.5 %.
std::uint64_t runs_needed(double confidence, double span_ns, double interval_ns);

int run_map_run(const map_run_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP
