// Runs a program for some seconds, and ends it with everything that it started.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "launch/launch.hpp"

namespace lotus::tool {

struct printed_rate {
  double seconds = 0;  ///< time since the program was started
  double per_s = 0;
};

/// What the program printed.
struct printed_output {
  std::string last_line{};
  std::uint64_t lines = 0;  ///< number of lines
  std::vector<printed_rate> rates{};
};

struct trial_request {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string dir;     ///< folder for the logs
  double seconds = 0;  ///< duration after which the program is asked to end
  /// Regular expression whose first group is a rate in the program's output; "": none.
  std::string metric;
  /// If set, called after a quarter, a half and three quarters of the time, with the location of
  /// the logs and the rates that were printed. If it returns true, the run ends.
  std::function<bool(const launched& place, const std::vector<printed_rate>& rates)> is_enough = {};
};

struct trial_result {
  launched place{};           ///< where the program's logs are
  std::int64_t begin_ns = 0;  ///< when the program was started, in ns since the Unix epoch
  double seconds = 0;         ///< how long the program ran
  exit_state end{};
  bool cut_off = false;  ///< whether the program was asked to end, because its time was over or the
                         ///< throughput was exact enough
  bool killed = false;   ///< whether the program ignored SIGTERM and was killed
  bool stopped = false;  ///< whether it was ended because it tried to use the terminal
  bool interrupted = false;  ///< whether this process, lotus-tool, was asked to end
  std::size_t outlived = 0;  ///< number of processes that outlived the program and were ended
  std::size_t unkillable = 0;
  std::uint64_t bytes = 0;  ///< maximum memory of all processes, sampled twice a second
  double cpus = 0;          ///< mean number of CPUs that all processes used
  double waited = 0;        ///< seconds per second that its threads waited for a CPU
  double other_cpus = 0;    ///< mean number of CPUs that all other programs of the machine used
  printed_output printed{};
};

/// Runs a program until it ends or its time is over. Then sends SIGTERM and, 2 s later, SIGKILL to
/// the program and all its descendants. Throws input_error if the program cannot be started, and
/// usage_error if the regular expression is invalid.
trial_result run_trial(const trial_request& request);

/// Throws usage_error if `metric` is not a regular expression with a group.
std::regex metric_expression(const std::string& metric);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP
