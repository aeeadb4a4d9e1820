// Provides lotus-tool map record, which samples a program while the program writes its logs, and
// map join, which assigns the samples of a run to the operations that their threads executed.
#ifndef LOTUS_TOOL_SAMPLING_COMMANDS_MAP_SAMPLES_HPP
#define LOTUS_TOOL_SAMPLING_COMMANDS_MAP_SAMPLES_HPP

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

struct map_record_options {
  double rate_hz = 1000;
  std::string output;  ///< file for the samples; empty: store the samples with the logs
  std::vector<std::string> program;
  bool quiet = false;
};

/// Runs a program, samples its threads and child processes, and returns its exit status (or 128 +
/// the signal that ended the program). The program inherits stdin, stdout and stderr. Throws
/// input_error without running the program if it cannot be started, if the kernel forbids sampling,
/// or if `output` cannot be written. Prints later problems with the samples as warnings.
int run_map_record(const map_record_options& options, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_COMMANDS_MAP_SAMPLES_HPP
