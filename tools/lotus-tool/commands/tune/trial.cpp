#include "commands/tune/trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include "base/descendants.hpp"
#include "base/errors.hpp"

namespace lotus::tool {
namespace {

using clock = std::chrono::steady_clock;

/// Returns the CPU time of all children that have ended, in seconds.
double cpu_of_children() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Returns the CPU time of the whole machine since it was started, in seconds; 0 if unknown.
double cpu_of_machine() {
  std::ifstream in("/proc/stat");
  std::string cpu;
  double user = 0;
  double nice = 0;
  double system = 0;
  if (!(in >> cpu >> user >> nice >> system)) return 0;
  return (user + nice + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

/// A pipe that a thread empties, so that the program never waits until it can print. Keeps only the
/// last line, and the rates in lines that match a regular expression.
class program_output {
 public:
  /// Throws input_error, or usage_error if `metric` is not a regular expression with a group.
  explicit program_output(const std::string& metric) {
    if (!metric.empty()) metric_ = metric_expression(metric);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw input_error("no pipe: " + error_text(errno));
    read_ = ends[0];
    write_ = ends[1];
  }
  program_output(const program_output&) = delete;
  program_output& operator=(const program_output&) = delete;
  ~program_output() {
    end();
    close(read_);
  }

  /// Returns the descriptor to which the program writes.
  int to_write() const noexcept { return write_; }
  /// Starts the thread that empties the pipe. Call it after the program was forked.
  void begin() {
    began_ = clock::now();
    close(write_);
    write_ = -1;
    thread_ = std::thread([this] { read_all(); });
  }
  /// Reads what is left in the pipe and ends the thread.
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    if (write_ >= 0) close(write_);
    write_ = -1;
  }

  /// Returns the rates that the program has printed so far.
  std::vector<printed_rate> rates() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return printed_.rates;
  }
  /// Returns what the program has printed; call it only after end().
  const printed_output& printed() const noexcept { return printed_; }

 private:
  void read_all() {
    std::array<char, 65536> some{};
    constexpr int look_ms = 50;
    while (true) {
      pollfd wait{read_, POLLIN, 0};
      const int ready = poll(&wait, 1, look_ms);
      // Do not wait for the pipe's end: a process that could not be ended may keep the pipe open.
      if (ready == 0 && ending_) break;
      if (ready <= 0) continue;
      const ssize_t got = ::read(read_, some.data(), some.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      for (const char* c = some.data(); c < some.data() + got; ++c) take(*c);
    }
    if (!line_.empty()) take_line();
  }

  void take(char c) {
    // A program that never ends its line must not fill the memory.
    constexpr std::size_t max_line = 4096;
    // Progress bars end their lines with a carriage return.
    if (c == '\n' || c == '\r') {
      if (!line_.empty()) take_line();
    } else if (line_.size() < max_line) {
      line_ += c;
    }
  }

  void take_line() {
    ++printed_.lines;
    printed_.last_line.swap(line_);
    line_.clear();
    if (!metric_) return;
    std::smatch match;
    if (!std::regex_search(printed_.last_line, match, *metric_)) return;
    const std::string number = match[1].str();
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end == number.c_str() || !std::isfinite(value) || value <= 0) return;
    const double after_s = seconds_since(began_);
    const std::lock_guard<std::mutex> lock(mutex_);
    printed_.rates.push_back({after_s, value});
  }

  std::optional<std::regex> metric_;
  int read_ = -1;
  int write_ = -1;
  std::atomic<bool> ending_{false};
  std::thread thread_;
  clock::time_point began_;
  // The thread uses the next two members until it has ended.
  std::string line_;
  printed_output printed_;
  mutable std::mutex mutex_;  // guards printed_.rates
};

/// If memory runs out, lets the kernel end the program instead of this process.
void offer_to_out_of_memory_killer(pid_t id) {
  std::ofstream("/proc/" + std::to_string(id) + "/oom_score_adj") << 1000;
}

/// Waits until the program ends or its time is over. Twice a second, measures the memory of its
/// processes and how long they waited for CPUs.
void watch(recording_program& recording, const descendants& processes, const program_output& output,
           const trial_request& request, trial_result& result) {
  constexpr double between_looks_s = 0.5;
  const clock::time_point begin = clock::now();
  const double seconds = request.seconds;
  child_process& program = recording.process();
  double next_look_s = 0.1;
  double next_question_s = seconds / 4;
  while (true) {
    const double now_s = seconds_since(begin);
    if (now_s >= seconds || interrupted_by() != 0) break;
    const double until_s = std::min(seconds, next_look_s) - now_s;
    if (program.ended(std::max(1, std::min(100, static_cast<int>(1e3 * until_s))))) break;
    if (seconds_since(begin) < next_look_s) continue;
    const descendants_use use = processes.use();
    result.bytes = std::max(result.bytes, use.bytes);
    result.waited = std::max(result.waited, use.waited_s / seconds_since(begin));
    result.stopped = use.stopped;
    if (use.stopped) break;
    if (request.is_enough && seconds_since(begin) >= next_question_s) {
      if (request.is_enough(recording.result(), output.rates())) break;
      next_question_s += seconds / 4;
    }
    next_look_s = seconds_since(begin) + between_looks_s;
  }
  result.seconds = seconds_since(begin);
}

}  // namespace

trial_result run_trial(const trial_request& request) {
  constexpr int patience_ms = 2000;
  trial_result result;
  const double cpu_before_s = cpu_of_children();
  const double machine_before_s = cpu_of_machine();
  const clock::time_point begin = clock::now();
  program_output output(request.metric);
  {
    descendants processes;
    launch_options options;
    options.program = request.command;
    options.dir = request.dir;
    options.environment = request.environment;
    options.output_to = output.to_write();
    result.begin_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
    recording_program program(options);
    output.begin();
    child_process& process = program.process();
    offer_to_out_of_memory_killer(process.pid());
    watch(program, processes, output, request, result);
    const bool runs = !process.ended(0);
    result.interrupted = interrupted_by() != 0;
    if (runs) {
      result.cut_off = !result.interrupted && !result.stopped;
      kill(-process.pid(), SIGTERM);
      kill(-process.pid(), SIGCONT);
      result.killed = !process.ended(patience_ms);
      if (result.killed) {
        kill(-process.pid(), SIGKILL);
        process.ended(-1);
      }
    }
    const std::size_t found = processes.end(result.unkillable);
    // Processes that outlived the program are not reported if its time was over or the user
    // interrupted it. Then they may only need more time to end, which is no fault.
    if (!result.cut_off && !result.interrupted) result.outlived = found;
    result.end = process.state();
    result.place = program.result();
  }
  output.end();
  const double seconds = std::max(1e-3, seconds_since(begin));
  result.cpus = (cpu_of_children() - cpu_before_s) / seconds;
  result.other_cpus = std::max(0.0, (cpu_of_machine() - machine_before_s) / seconds - result.cpus);
  result.printed = output.printed();
  return result;
}

std::regex metric_expression(const std::string& metric) {
  try {
    std::regex expression(metric);
    if (expression.mark_count() > 0) return expression;
  } catch (const std::regex_error&) {
    throw usage_error("--metric: not a regular expression: " + metric);
  }
  throw usage_error("--metric: needs a group for the number, such as 'rate ([0-9.]+)'");
}

}  // namespace lotus::tool
