// Provides lotus-tool map record, which samples a program while the program writes its logs.
#pragma once

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

/// Runs a program, samples its threads and child processes, and returns its exit status (or 128 +
/// the signal that ended the program). The program inherits stdin, stdout and stderr. Throws
/// input_error without running the program if it cannot be started, if the kernel forbids sampling,
/// or if `output` cannot be written. Prints later problems with the samples as warnings.
int run_map_record(const map_record_options& options, std::ostream& err);

}  // namespace lotus::tool
