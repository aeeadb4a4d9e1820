#include "commands/tune/program_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <string_view>
#include <thread>

#include "base/errors.hpp"

namespace lotus::tool {
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
