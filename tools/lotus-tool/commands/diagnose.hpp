// lotus-tool diagnose: what a run waits for, and what to do.
#ifndef LOTUS_TOOL_COMMANDS_DIAGNOSE_HPP
#define LOTUS_TOOL_COMMANDS_DIAGNOSE_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct diagnose_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::size_t skip_batches = 0;      ///< at the beginning of every epoch
  std::vector<std::string> fail_if;  ///< verdicts, by name
  bool json = false;
  bool details = false;  ///< all numbers behind the first screen
  /// Where the reader is told what to type next, below the first screen.
  bool next_commands = true;
  bool strict = false;
  bool quiet = false;
};

/// A run's verdict is one of options.fail_if. Where none is, and a run has no verdict at all:
/// exit_no_answer.
inline constexpr int exit_failed_verdict = 3;

/// Prints the verdict of every run in options.dir. Returns the exit status; throws input_error.
int run_diagnose(const diagnose_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_DIAGNOSE_HPP
