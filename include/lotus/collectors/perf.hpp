// perf record and perf stat, through their control channel with acknowledgement.
#ifndef LOTUS_COLLECTORS_PERF_HPP
#define LOTUS_COLLECTORS_PERF_HPP

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/clock.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Holds the text that perf was given as --control: "fifo:CTL,ACK" or "fd:CTL,ACK".
inline constexpr char perf_control_variable[] = "LOTUS_PERF_CONTROL";

/// The two ends of perf's control channel (perf-record(1), --control).
class perf_control {
 public:
  static perf_control& instance() noexcept {
    static perf_control control;
    return control;
  }

  bool open_from_environment() noexcept {
    const char* text = secure_getenv(perf_control_variable);
    const std::string_view given = text != nullptr ? text : "";
    const std::size_t colon = given.find(':');
    const std::size_t comma = given.find(',');
    if (colon == std::string_view::npos || comma == std::string_view::npos || comma < colon) {
      collector_say("the perf collector needs %s=fifo:CTL,ACK, as given to perf --control",
                    perf_control_variable);
      return false;
    }
    const bool fifo = given.substr(0, colon) == "fifo";
    control_ = open_end(fifo, given.substr(colon + 1, comma - colon - 1));
    answers_ = open_end(fifo, given.substr(comma + 1));
    if (control_ < 0 || answers_ < 0) {
      collector_say("cannot open perf's control channel %s: %s", text, std::strerror(errno));
      close_both();
      return false;
    }
    return true;
  }

  /// Sends a command and waits for the answer; false when none comes in time.
  bool send(std::string_view command) noexcept {
    if (control_ < 0) return false;
    if (write(control_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) {
      return false;
    }
    // An answer is "ack\n" and a zero; what counts is the newline.
    const std::int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * 1'000'000;
    for (;;) {
      const std::int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
      if (left_ns <= 0) return false;
      pollfd p{answers_, POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(left_ns / 1'000'000) + 1) <= 0) continue;
      char text[16];
      const ssize_t got = read(answers_, text, sizeof(text));
      if (got > 0 && std::memchr(text, '\n', static_cast<std::size_t>(got)) != nullptr) return true;
    }
  }

  void close_both() noexcept {
    if (control_ >= 0) close(control_);
    if (answers_ >= 0) close(answers_);
    control_ = answers_ = -1;
  }

 private:
  /// Read and write, so that opening a FIFO never waits and writing never raises SIGPIPE; a pipe
  /// that is given as a descriptor is opened anew for that.
  static int open_end(bool fifo, std::string_view text) noexcept {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s%.*s", fifo ? "" : "/proc/self/fd/",
                                     static_cast<int>(text.size()), text.data());
    if (text.empty() || length >= static_cast<int>(sizeof(path))) {
      errno = EINVAL;
      return -1;
    }
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }

  int control_ = -1;
  int answers_ = -1;
};

/// The interval that lotus-tool asked its collector for, from LOTUS_MAP_RATE (Hz); 1 ms without.
inline std::uint64_t asked_interval_ns() noexcept {
  const char* text = secure_getenv("LOTUS_MAP_RATE");
  const double rate_hz = text != nullptr ? std::strtod(text, nullptr) : 0;
  return rate_hz >= 1 && rate_hz <= 1e6 ? static_cast<std::uint64_t>(1e9 / rate_hz) : 1'000'000;
}

inline const collector_backend* perf_backend() noexcept {
  static constexpr collector_backend table{
      "perf",
      true,
      []() noexcept { return perf_control::instance().open_from_environment(); },
      []() noexcept { return perf_control::instance().send("enable\n"); },
      []() noexcept { return perf_control::instance().send("disable\n"); },
      []() noexcept {
        perf_control::instance().send("disable\n");
        perf_control::instance().close_both();
      },
      []() noexcept { return asked_interval_ns(); },
      nullptr,
  };
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PERF_HPP
