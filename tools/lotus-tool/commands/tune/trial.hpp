// Runs a program for some seconds, and ends it with everything that it started.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lotus::tool {

/// A rate that the program printed.
struct printed_rate {
  double seconds = 0;  ///< time since the program was started
  double per_s = 0;
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
  std::function<bool(const std::string& dir, const std::string& prefix,
                     const std::vector<printed_rate>& rates)>
      is_enough = {};
};

/// The result of a trial.
struct trial_result {
  std::string dir;  ///< folder of the program's logs
  std::string prefix;
  std::int64_t begin_ns = 0;  ///< when the program was started, in ns since the Unix epoch
  double seconds = 0;         ///< how long the program ran
  int status = 0;             ///< exit status, or 128 + signal
  bool by_signal = false;
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
  std::string last_line;    ///< the last line that the program printed
  std::uint64_t lines_read = 0;  ///< number of lines that the program printed
  std::vector<printed_rate> rates;
};

/// Runs a program until it ends or its time is over. Then sends SIGTERM and, 2 s later, SIGKILL to
/// the program and all its descendants. Throws input_error if the program cannot be started, and
/// usage_error if the regular expression is invalid.
trial_result run_trial(const trial_request& request);

/// A pipe that a thread empties, so that the program never waits until it can print. Keeps only the
/// last line, and the rates in lines that match a regular expression.
class program_output {
 public:
  /// Throws input_error, or usage_error if `metric` is not a regular expression with a group.
  explicit program_output(const std::string& metric);
  program_output(const program_output&) = delete;
  program_output& operator=(const program_output&) = delete;
  ~program_output();

  /// Returns the descriptor to which the program writes.
  int to_write() const noexcept { return write_; }
  /// Starts the thread that empties the pipe. Call it after the program was forked.
  void begin();
  /// Reads what is left in the pipe and ends the thread.
  void end();

  /// Returns the rates that the program has printed so far.
  std::vector<printed_rate> rates() const;
  // The following functions may be called only after end().

  const std::string& last_line() const noexcept { return last_line_; }
  std::uint64_t lines() const noexcept { return lines_; }

 private:
  void read_all();
  void take(std::string_view text);
  void take_line();

  std::optional<std::regex> metric_;
  int read_ = -1;
  int write_ = -1;
  std::atomic<bool> ending_{false};
  std::thread thread_;
  std::chrono::steady_clock::time_point began_;
  // The thread uses the next three members until it has ended.
  std::string line_;
  std::string last_line_;
  std::uint64_t lines_ = 0;
  mutable std::mutex mutex_;
  std::vector<printed_rate> rates_;  // guarded by mutex_
};

/// Throws usage_error if `metric` is not a regular expression with a group.
std::regex metric_expression(const std::string& metric);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_TRIAL_HPP
