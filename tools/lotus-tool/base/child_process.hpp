// Starts programs, without a shell, and sees to it that they end.
#ifndef LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
#define LOTUS_TOOL_BASE_CHILD_PROCESS_HPP

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

struct command {
  std::vector<std::string> arguments;  ///< the first is looked for in PATH when it has no '/'
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  /// File that takes what the program prints on stdout and stderr, appended; its stdin is empty
  /// then. Without it the program has our three.
  std::string output;
};

/// A signal asked us to end. Thrown when the program that ran has been ended.
struct interrupted : std::runtime_error {
  explicit interrupted(int by) : std::runtime_error("interrupted"), signal(by) {}
  int signal;
};

/// How a program ended.
struct exit_state {
  int status = 0;  ///< of exit(); 128 + the signal where one ended it, as shells say it
  bool by_signal = false;
};

/// Runs a program and waits for its end. It is its own process group unless it shares our terminal
/// (no `output`).
///
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT meanwhile end the program, with SIGKILL after 2 s: the whole
/// group, and whatever it left behind in it; then `interrupted` is thrown. Other signals that job
/// schedulers send are passed on to it. Throws input_error when the program cannot be started. One
/// at a time.
exit_state run_command(const command& what);

/// The same in three steps, for who must do something while the program runs.
class child_process {
 public:
  /// Forks; the child waits for go(). Throws input_error.
  explicit child_process(const command& what);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Kills what still runs.
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// Lets the program begin. Throws input_error when it cannot be executed.
  void go();
  /// Whether it has ended; waits for at most `most_ms` (-1: for ever).
  bool ended(int most_ms);
  exit_state state() const noexcept { return state_; }

 private:
  command what_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  int go_pipe_ = -1;
  int error_pipe_ = -1;
  bool reaped_ = false;
  exit_state state_;
};

/// The signal that asked us to end, 0 when none did.
int interrupted_by() noexcept;

/// Ends this process by that signal, as if it had not been caught.
[[noreturn]] void end_by_signal(int signal);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
