// The terminal that `top` draws on; its state is restored at the end.
#ifndef LOTUS_TOOL_COMMANDS_TOP_TERMINAL_HPP
#define LOTUS_TOOL_COMMANDS_TOP_TERMINAL_HPP

#include <termios.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lotus::tool {

/// A key or another event.
enum class terminal_event : std::uint8_t { nothing, key, up, down, resized, quit };

/// Uses the terminal at standard input and output: alternate screen, unbuffered keys, no echo. Only
/// one object may exist at a time; it handles the signals that end, stop or resize.
class terminal {
 public:
  /// Whether standard input and output are a terminal that can be drawn on.
  static bool is_there();

  terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal();

  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return columns_; }

  /// Waits up to `most_ns` for an event; sets `key` if the event is a key.
  terminal_event wait(std::int64_t most_ns, char& key);

  /// Returns false if the terminal is gone.
  bool draw(const std::vector<std::string>& lines) const;

  /// The signal that requested the end; 0: none.
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
