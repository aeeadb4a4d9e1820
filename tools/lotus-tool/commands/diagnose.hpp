// lotus-tool diagnose: finds what a run waits for, and suggests what to change.
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
  std::size_t skip_batches = 0;  ///< number of batches to ignore at the beginning of every epoch
  std::vector<std::string> fail_if;  ///< names of the verdicts that make the command fail
  bool json = false;
  bool ranks = false;    ///< compare the ranks of a training instead of diagnosing each
  bool details = false;  ///< print all numbers after the first screen
  /// Whether the first screen ends with commands that the user may want to run next.
  bool next_commands = true;
  bool strict = false;
  bool quiet = false;
};

/// The exit status if the verdict of a run is in options.fail_if. Otherwise, if a run has no
/// verdict, the exit status is exit_no_answer.
inline constexpr int exit_failed_verdict = 3;

/// Prints the verdict of every run in options.dir. Returns the exit status; throws input_error.
int run_diagnose(const diagnose_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_DIAGNOSE_HPP
