#include "commands/tune/trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/child_process.hpp"
#include "base/descendants.hpp"
#include "base/errors.hpp"
#include "launch/launch.hpp"

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
      const launched place = recording.result();
      if (request.is_enough(place.dir, place.prefix, output.rates())) break;
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
    if (!process.ended(0)) {
      result.interrupted = interrupted_by() != 0;
      result.cut_off = !result.interrupted && !result.stopped;
      kill(-process.pid(), SIGTERM);
      kill(-process.pid(), SIGCONT);
      result.killed = !process.ended(patience_ms);
      if (result.killed) {
        kill(-process.pid(), SIGKILL);
        process.ended(-1);
      }
    } else {
      result.interrupted = interrupted_by() != 0;
    }
    const std::size_t found = processes.end(result.unkillable);
    // Processes that outlived the program are not reported if its time was over or the user
    // interrupted it. Then they may only need more time to end, which is no fault.
    if (!result.cut_off && !result.interrupted) result.outlived = found;
    result.status = process.state().status;
    result.by_signal = process.state().by_signal;
    const launched place = program.result();
    result.dir = place.dir;
    result.prefix = place.prefix;
  }
  output.end();
  const double seconds = std::max(1e-3, seconds_since(begin));
  result.cpus = (cpu_of_children() - cpu_before_s) / seconds;
  result.other_cpus = std::max(0.0, (cpu_of_machine() - machine_before_s) / seconds - result.cpus);
  result.last_line = output.last_line();
  result.lines_read = output.lines();
  result.rates = output.rates();
  return result;
}

namespace {

/// Maximum number of bytes of a line that are kept, so that a program that never ends its line does
/// not fill the memory.
constexpr std::size_t max_line = 4096;

}  // namespace

std::regex metric_expression(const std::string& metric) {
  try {
    std::regex expression(metric);
    if (expression.mark_count() > 0) return expression;
  } catch (const std::regex_error&) {
    throw usage_error("--metric: not a regular expression: " + metric);
  }
  throw usage_error("--metric: needs a group for the number, such as 'rate ([0-9.]+)'");
}

program_output::program_output(const std::string& metric) {
  if (!metric.empty()) metric_ = metric_expression(metric);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    throw input_error(std::string("no pipe: ") + std::strerror(errno));
  }
  read_ = ends[0];
  write_ = ends[1];
}

program_output::~program_output() {
  end();
  close(read_);
}

void program_output::begin() {
  began_ = std::chrono::steady_clock::now();
  close(write_);
  write_ = -1;
  thread_ = std::thread([this] { read_all(); });
}

void program_output::end() {
  ending_ = true;
  if (thread_.joinable()) thread_.join();
  if (write_ >= 0) close(write_);
  write_ = -1;
}

void program_output::read_all() {
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
    take({some.data(), static_cast<std::size_t>(got)});
  }
  if (!line_.empty()) take_line();
}

void program_output::take(std::string_view text) {
  for (const char c : text) {
    // Progress bars end their lines with a carriage return.
    if (c == '\n' || c == '\r') {
      if (!line_.empty()) take_line();
    } else if (line_.size() < max_line) {
      line_ += c;
    }
  }
}

void program_output::take_line() {
  ++lines_;
  last_line_.swap(line_);
  line_.clear();
  if (!metric_) return;
  std::smatch match;
  if (!std::regex_search(last_line_, match, *metric_)) return;
  const std::string number = match[1].str();
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (end == number.c_str() || !std::isfinite(value) || value <= 0) return;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - began_;
  const std::lock_guard<std::mutex> lock(mutex_);
  rates_.push_back({since.count(), value});
}

std::vector<printed_rate> program_output::rates() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rates_;
}

}  // namespace lotus::tool
