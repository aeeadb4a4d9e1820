// Writes the logs and side logs of a simulated run.
#ifndef LOTUS_TESTS_PLANTED_LOGS_HPP
#define LOTUS_TESTS_PLANTED_LOGS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Collects records of all threads in any order, and writes them in the order in which the threads
/// would have written them, sorted by their ends. Times are ns since the beginning of the run.
class planted_logs {
 public:
  planted_logs() = default;
  explicit planted_logs(int usable_cpus) { cpus(usable_cpus); }

  /// Assigns all following records to the loader `name`; "" is the default loader.
  void loader(std::string name) { loader_ = std::move(name); }

  void op(int thread, const std::string& name, std::int64_t start, std::int64_t duration) {
    line(thread, "worker", 'S' + name, start, duration);
  }
  void stage(int thread, const std::string& name, std::int64_t number, std::int64_t start,
             std::int64_t duration) {
    op(thread, name, start, duration);
    side_line(thread, "stage,S" + name, start, duration, number);
  }
  void segment(int thread, const std::string& name, std::int64_t id, std::int64_t start,
               std::int64_t duration) {
    op(thread, name, start, duration);
    side_line(thread, "piece,S" + name, start, duration, id);
  }
  void takes(int thread, std::int64_t at, std::int64_t batch, std::int64_t item) {
    side_line(thread, "takes,", at, batch, item);
  }
  /// Records that the thread was off the CPU for `off` ns before `at`, including `run_queue` ns in
  /// which it waited for a CPU.
  void off_cpu(int thread, std::int64_t at, std::int64_t off, std::int64_t run_queue) {
    side_line(thread, "off_cpu,", at, off, run_queue);
  }
  /// Records a sample of a thread that waits for a "lock" or a "file", or that is in "sleep". It
  /// stands for `ns` ns.
  void wait_sample(int thread, std::int64_t at, const std::string& reason, std::int64_t ns);
  /// The same for 10 ms. The thread waits for `what`, at an address (0: none) that thread `holder`
  /// holds (0: unknown).
  void wait_sample(int thread, std::int64_t at, const std::string& reason, const std::string& what,
                   int address, int holder);
  void made(int thread, std::int64_t i, std::int64_t start, std::int64_t duration) {
    line(thread, "worker", numbered("SBatchPreprocessed_", i), start, duration);
  }
  void waited(int thread, std::int64_t i, std::int64_t start, std::int64_t duration) {
    line(thread, "main", numbered("SBatchWait_", i), start, duration);
  }
  /// Records that batch i arrived out of order and was buffered.
  void arrived(int thread, std::int64_t i, std::int64_t at) { waited(thread, i, at, 1000); }
  void used(int thread, std::int64_t i, std::int64_t at) {
    line(thread, "main", numbered("SBatchConsumed_", i), at, 1000);
  }
  /// Sets how many records the process reports as written and as dropped.
  void records(std::uint64_t written, std::uint64_t dropped) {
    written_ = written;
    dropped_ = dropped;
  }
  /// Sets the number of CPUs that the process may use. The information file then also states that
  /// the process measured CPU times at context switches.
  void cpus(int count) { cpus_ = count; }
  /// Records how much CPU time the process had used at `at`, and how long its CPUs had been idle.
  void cpu_time(std::int64_t at, std::int64_t cpu_ns, std::int64_t idle_ns);
  /// Adds a line to the information file, which replaces an earlier line of its kind.
  void info(const std::string& text) { cpu_times_ += text + '\n'; }
  /// Adds `lines` malformed lines to the end of a thread's worker log.
  void damage(int thread, int lines) { damaged_[thread] = lines; }

  void write(const temp_dir& dir) const;

 private:
  struct record {
    std::int64_t end;
    std::int64_t start;
    std::string text;
  };

  static std::string numbered(const char* name, std::int64_t i) { return name + std::to_string(i); }
  std::string file(int thread, const std::string& role) const;
  void line(int thread, const std::string& role, const std::string& name, std::int64_t start,
            std::int64_t duration);
  void side_line(int thread, const std::string& kind_and_name, std::int64_t time, std::int64_t a,
                 std::int64_t b);

  std::string loader_;
  std::map<std::string, std::vector<record>> files_;
  std::map<int, int> damaged_;
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  int cpus_ = 0;
  std::string wait_samples_;  // lines of the file of waits
  std::string cpu_times_;     // lines of the information file
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_LOGS_HPP
