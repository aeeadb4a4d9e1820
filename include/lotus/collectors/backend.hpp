// What a collector is to the rest of the library: a table of functions.
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Says one line on stderr, printf-like.
__attribute__((format(printf, 1, 2))) inline void collector_say(const char* format, ...) noexcept {
  char line[1024] = "lotus: ";
  constexpr std::size_t head = 7;
  va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
  va_end(values);
  if (n < 0) return;
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  if (write(STDERR_FILENO, line, length + 1) < 0) return;  // nobody is left to be told
}

/// How long a collector may take to answer: LOTUS_COLLECTOR_TIMEOUT_MS, else 2000.
inline std::int64_t collector_timeout_ms() noexcept {
  const char* text = secure_getenv("LOTUS_COLLECTOR_TIMEOUT_MS");
  const long given = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  return given > 0 && given < 3'600'000 ? given : 2000;
}

/// One kind of collector. All calls come one at a time, never nested, never after detach().
struct collector_backend {
  const char* name;
  /// resume() and pause() return only when collection is on or off; without it the caller must
  /// sleep, or late samples of the code before fall into the region.
  bool acknowledges;
  /// Gets ready, paused. False, after saying why, when it cannot be used.
  bool (*begin)() noexcept;
  /// False when the collector does not answer any more.
  bool (*resume)() noexcept;
  bool (*pause)() noexcept;
  /// For good. May be called at any time after begin().
  void (*detach)() noexcept;
  /// CPU time between two samples, in ns; 0 where there are no samples.
  std::uint64_t (*interval_ns)() noexcept;
  /// A collected region has ended (times of CLOCK_MONOTONIC in ns). May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP
