// What the library says: one line, to the program's handler or to stderr.
#ifndef LOTUS_MESSAGE_HPP
#define LOTUS_MESSAGE_HPP

#include <stdarg.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "lotus/config.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

class messenger {
 public:
  void use(void (*handler)(const char*)) noexcept { handler_ = handler; }

  /// Says one line, printf-like. Allocates nothing.
  __attribute__((format(printf, 2, 3))) void say(const char* format, ...) const noexcept {
    constexpr std::size_t head = 7;
    char line[4096 + 512] = "lotus: ";
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
    va_end(values);
    if (n < 0) return;
    if (handler_ != nullptr) return handler_(line + head);
    const std::size_t length = std::strlen(line);
    line[length] = '\n';
    write_all(STDERR_FILENO, line, length + 1);
  }

 private:
  void (*handler_)(const char*) = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MESSAGE_HPP
