// Provides lotus-tool map record, which samples a real run while its logs are written.
#ifndef LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP
#define LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP

#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {

struct map_record_options {
  double rate_hz = 1000;
  std::string output;  ///< file for the samples; empty: store the samples with the logs
  std::vector<std::string> program;
  bool quiet = false;
};

/// Runs the program unchanged, samples all its threads and children, and returns its exit status
/// (128 + the signal that ended the program). The program inherits stdin, stdout and stderr. If the
/// program cannot be started, the kernel forbids sampling or `output` cannot be written, throws
/// input_error and does not run the program; prints later problems with the samples as warnings.
int run_map_record(const map_record_options& options, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP
