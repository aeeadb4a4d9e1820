// lotus-tool map run: runs a probe under a collector as often as needed, and builds a mapping.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "commands/map/map_build.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {

struct map_run_options {
  std::string collector = "builtin";
  double rate_hz = 0;             ///< 0: the collector's default
  std::vector<std::string> ops;   ///< empty: all regions
  double confidence = 0.75;       ///< probability of seeing a function at least once
  std::int64_t span_ns = 660000;  ///< duration of the function in each run
  std::uint64_t runs = 0;         ///< 0: calculated from confidence and span
  hit_rule rule;
  std::string output;   ///< empty: print only
  std::string reports;  ///< folder of the raw reports; empty: named after the output
  std::vector<std::string> program;
  print_as print = print_as::table;
  bool quiet = false;
};

/// The number of runs needed to see a function of `span_ns` with probability `confidence`, if
/// samples are `interval_ns` apart with a random phase: the smallest n with C <= 1 - (1 - f/s)^n
/// (Lotus paper, LotusMap), but the probability to miss it may exceed 1 - C by 5 %. The paper's f =
/// 0.66 ms, s = 10 ms, C = 0.75 thus give n = 20, whose probability is 74.5 %. At least 1.
std::uint64_t runs_needed(double confidence, double span_ns, double interval_ns);

int run_map_run(const map_run_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAP_RUN_HPP
