// lotus-tool map record: samples a real run while its logs are written.
#ifndef LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP
#define LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP

#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {

struct map_record_options {
  double rate_hz = 1000;
  std::string output;  ///< file of the samples; empty: stored with the logs
  std::vector<std::string> program;
  bool quiet = false;
};

/// Runs the program unchanged, samples all its threads and children, and returns its exit status
/// (128 + the signal that ended it). The program uses our stdin, stdout and stderr. Throws
/// input_error, without running the program, if it cannot be started, if the kernel forbids
/// sampling or if `output` cannot be written; a later problem with the samples is only a warning.
int run_map_record(const map_record_options& options, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_COMMANDS_MAP_RECORD_HPP
