// Reads what a program prints, without storing it.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_PROGRAM_OUTPUT_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_PROGRAM_OUTPUT_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "commands/tune/trial.hpp"

namespace lotus::tool {

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

#endif  // LOTUS_TOOL_COMMANDS_TUNE_PROGRAM_OUTPUT_HPP
