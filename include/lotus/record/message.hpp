// Prints the library's messages, one line each, to the program's handler or to stderr.
#ifndef LOTUS_RECORD_MESSAGE_HPP
#define LOTUS_RECORD_MESSAGE_HPP

#include <stdarg.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "lotus/base/file.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/join.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The program's function for messages, options::on_message. All functions are thread-safe.
class message_handler {
 public:
  /// @param handler  the program's function; null: the program has none.
  void use(void (*handler)(const char*)) noexcept {
    handler_.store(handler, std::memory_order_release);
  }
  /// Passes a message to the handler. Returns false if there is no handler.
  bool deliver(const char* line) const noexcept {
    void (*const handler)(const char*) = handler_.load(std::memory_order_acquire);
    if (handler != nullptr) handler(line);
    return handler != nullptr;
  }

 private:
  std::atomic<void (*)(const char*)> handler_{nullptr};
};

/// Prints one line, formatted as by printf. The line goes to options::on_message of the process's
/// latest start(); if that option is not set, and in a child process without fork handlers, to
/// stderr with the prefix "lotus: ". Thread safety: any thread of any shared object. Allocates
/// nothing.
LOTUS_DETAIL_PER_MODULE __attribute__((format(printf, 1, 2))) inline void say(const char* format,
                                                                              ...) noexcept {
  constexpr std::size_t head = 7;
  // Without memory, the message is cut.
  char room[256];
  const mapped<char[4096 + 512]> memory;
  char* const line = memory ? *memory : room;
  const std::size_t bytes = memory ? sizeof(*memory) : sizeof(room);
  std::memcpy(line, "lotus: ", head + 1);
  va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(line + head, bytes - head - 1, format, values);
  va_end(values);
  if (n < 0) return;
  // The message must stay one line, even if a file name in it contains line ends.
  for (char* c = line + head; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) *c = '?';
  }
  const signals_blocked quiet;
  const services* s = services_if_any();
  if (s != nullptr && s->deliver(line + head)) return;
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  write_all(STDERR_FILENO, line, length + 1);
}

LOTUS_DETAIL_PER_MODULE inline void say_alone() noexcept {
  say("this shared object cannot find the session of its process (memfd_create or /proc/self/maps "
      "is denied): it uses a session of its own, which records only if this shared object calls "
      "lotus::start() or LOTUS_LOG_FILE is set");
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_MESSAGE_HPP
