// Controls the terminal that `top` draws on, and restores its state at the end.
#ifndef LOTUS_TOOL_COMMANDS_TOP_TERMINAL_HPP
#define LOTUS_TOOL_COMMANDS_TOP_TERMINAL_HPP

#include <termios.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lotus::tool {

/// A pressed key or another event; `key` is any key except the arrow keys.
enum class terminal_event : std::uint8_t { nothing, key, up, down, resized, quit };

/// Uses the terminal at standard input and output with an alternate screen and without line
/// buffering or echo. Only one object may exist at a time, because it handles signals: those that
/// end or stop the process, and the one for a new terminal size.
class terminal {
 public:
  /// Whether standard input and output are a terminal that supports drawing.
  static bool is_there();

  terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal();

  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return columns_; }

  /// Waits for an event for at most `max_ns`. Sets `key` if the event is a key.
  terminal_event wait(std::int64_t max_ns, char& key);

  /// Replaces the screen's content. Returns false if the terminal was closed.
  bool draw(const std::vector<std::string>& lines) const;

  /// Returns the signal that asked the process to end; 0 if there was none.
  int signal() const noexcept { return ended_by_; }

 private:
  void enter();
  void leave();
  void stop();
  void measure();

  termios before_{};
  sigset_t mask_before_{};
  std::vector<struct sigaction> actions_before_;
  std::size_t rows_ = 24;
  std::size_t columns_ = 80;
  int ended_by_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_TERMINAL_HPP
