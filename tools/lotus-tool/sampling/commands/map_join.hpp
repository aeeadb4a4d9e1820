// Provides lotus-tool map join, which assigns the samples of a run to the operations that their
// threads executed at the time.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "commands/map/map_build.hpp"
#include "describe/described.hpp"
#include "log/folder/log_files.hpp"
#include "sampling/join/sample_join.hpp"

namespace lotus::tool {

struct map_join_options {
  std::string dir;
  /// Files with samples; empty: use the samples stored with the logs.
  std::vector<std::string> samples;
  std::string prefix = std::string(default_prefix);
  print_as print = print_as::table;
  bool strict = false;
  bool quiet = false;
};

/// JSON output contains the samples by operation.
const description<joined_run>& description_of(const joined_run*);

void print_joined(const joined_run& run, print_as print, std::ostream& out);

int run_map_join(const map_join_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool
