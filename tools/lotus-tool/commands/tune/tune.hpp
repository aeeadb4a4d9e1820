// lotus-tool tune: finds the best settings of a program by running it.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_TUNE_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_TUNE_HPP

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "commands/tune/knobs.hpp"
#include "commands/tune/search.hpp"
#include "curve/curve.hpp"
#include "describe/described.hpp"

namespace lotus::tool {

struct tune_options {
  std::vector<std::string> program;  ///< the command, with {NAME} in place of values
  std::vector<knob> knobs;
  std::vector<std::pair<std::string, std::string>> start;  ///< names and values of the first run
  double seconds = 20;                                     ///< maximum length of a run
  std::size_t runs = 6;
  std::optional<double> target_per_s;
  std::string metric;  ///< regular expression for a rate in the program's output; "": none
  std::string dir;     ///< folder for the logs of the runs; "": tune, or tune-2 and so on
  bool json = false;
  bool quiet = false;
};

/// Runs the command with different settings, and prints all runs and the best command. Returns the
/// exit status: exit_bad_input if every run failed, exit_no_answer if no run reaches the target,
/// 128 + signal if a signal ended the search. Throws input_error and usage_error.
int run_tune(const tune_options& options, std::ostream& out, std::ostream& err);

/// The data that is printed about a search.
struct tune_result {
  const search* found = nullptr;
  std::optional<double> target_per_s;
  int interrupted_by = 0;  ///< the signal that ended the search, if it was one
  std::string dir;         ///< folder with the logs of all runs
  /// What the first run predicts for the first setting that is simulated, with all runs as dots.
  std::optional<speed_curve> curve = {};
};

void print_tune(const tune_result& result, std::ostream& out);
const description<tune_result>& description_of(const tune_result*);

/// Returns a line about the latest run, such as
/// "run 2 of at most 6, workers=4: 99.1 batches/s (98.7 were predicted)".
std::string run_line(const search& found, std::size_t of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_TUNE_HPP
