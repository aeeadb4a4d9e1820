// Controls perf record and perf stat through their control channel (option --control), on which
// perf acknowledges each command.
#ifndef LOTUS_COLLECTORS_PERF_HPP
#define LOTUS_COLLECTORS_PERF_HPP

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/environment.hpp"
#include "lotus/base/file.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The program's two ends of perf's control channel (perf-record(1), --control).
class perf_control {
 public:
  static perf_control& instance() noexcept {
    static perf_control control;
    return control;
  }

  bool open_from_environment() noexcept {
    const char* const text = environment_text(variable::perf_control);
    const std::string_view given = text != nullptr ? text : "";
    const std::size_t colon = given.find(':');
    const std::size_t comma = given.find(',');
    const bool fifo = given.substr(0, colon) == "fifo";
    if (colon == std::string_view::npos || comma == std::string_view::npos || comma < colon ||
        (!fifo && given.substr(0, colon) != "fd")) {
      report_once(
          variable::perf_control, given, [](const variable_row& of, std::string_view) noexcept {
            say("the perf collector needs %s=%s, as given to perf --control", of.name, of.values);
          });
      return false;
    }
    close_both();
    control_ = open_end(fifo, given.substr(colon + 1, comma - colon - 1));
    answers_ = open_end(fifo, given.substr(comma + 1));
    if (control_.number() < 0 || answers_.number() < 0) {
      say("cannot open perf's control channel %s: %s", text, std::strerror(errno));
      close_both();
      return false;
    }
    return true;
  }

  /// Sends a command to perf and waits for its answer. Returns false if there is no answer within
  /// collector_timeout_ms().
  bool send(std::string_view command) noexcept {
    if (control_.number() < 0) return false;
    // `lost` is true if the program has closed one of the two descriptors.
    const bool lost = !control_.holds() || !answers_.holds();
    if (lost && !open_from_environment()) return false;
    if (write_all(control_.number(), command.data(), command.size()) != 0) return false;
    // An answer consists of "ack\n" and a zero byte; the newline marks its end.
    const std::int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * 1'000'000;
    for (;;) {
      const std::int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
      if (left_ns <= 0) return false;
      pollfd p{answers_.number(), POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(left_ns / 1'000'000) + 1) <= 0) continue;
      char text[16];
      const ssize_t got = read(answers_.number(), text, sizeof(text));
      if (got > 0 && std::memchr(text, '\n', static_cast<std::size_t>(got)) != nullptr) return true;
    }
  }

  void close_both() noexcept {
    control_.close();
    answers_.close();
  }

 private:
  /// Opens one end of the control channel for reading and writing, so that opening a FIFO never
  /// blocks and writing never raises SIGPIPE. For the same reason, a pipe that is given as a
  /// descriptor number is opened again, through /proc.
  static owned_descriptor open_end(bool fifo, std::string_view text) noexcept {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s%.*s", fifo ? "" : "/proc/self/fd/",
                                     static_cast<int>(text.size()), text.data());
    if (text.empty() || length >= static_cast<int>(sizeof(path))) {
      errno = EINVAL;
      return {};
    }
    return owned_descriptor{open_at_high_fd(AT_FDCWD, path, O_RDWR | O_NONBLOCK)};
  }

  owned_descriptor control_;
  owned_descriptor answers_;
};

/// Whether this program runs under perf: then LOTUS_PERF_CONTROL names perf's control channel.
inline bool perf_is_here() noexcept {
  return environment_text(variable::perf_control) != nullptr;
}

inline const collector_backend* perf_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.begin = []() noexcept { return perf_control::instance().open_from_environment(); };
    b.resume = []() noexcept { return perf_control::instance().send("enable\n"); };
    b.pause = []() noexcept { return perf_control::instance().send("disable\n"); };
    b.detach = []() noexcept {
      perf_control::instance().send("disable\n");
      perf_control::instance().close_both();
    };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PERF_HPP
