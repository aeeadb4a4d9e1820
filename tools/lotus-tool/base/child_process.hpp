// Starts programs without a shell, and ensures that they end.
#ifndef LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
#define LOTUS_TOOL_BASE_CHILD_PROCESS_HPP

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

struct command {
  std::vector<std::string> arguments;  ///< the first is searched in PATH unless it contains '/'
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  /// File to which the program's stdout and stderr are appended; its stdin is empty then. If no
  /// file is given, the program inherits our stdin, stdout and stderr.
  std::string output;
};

/// Thrown after a signal asked this process to end and the running program was ended.
struct interrupted : std::runtime_error {
  explicit interrupted(int by) : std::runtime_error("interrupted"), signal(by) {}
  int signal;
};

/// How a program ended.
struct exit_state {
  int status = 0;  ///< of exit(), or 128 + the signal that ended it, as in shells
  bool by_signal = false;
};

/// Runs a program and waits for its end. It gets its own process group unless it shares our
/// terminal (no `output`).
///
/// If SIGINT, SIGTERM, SIGHUP or SIGQUIT arrives meanwhile, the program is ended, after 2 s with
/// SIGKILL, together with everything that is left in its group; then `interrupted` is thrown. Other
/// signals that job schedulers send are forwarded to it. Throws input_error if the program cannot
/// be started. Only one may run at a time.
exit_state run_command(const command& what);

/// The same in three steps, for callers that do something while the program runs.
class child_process {
 public:
  /// Forks; the child waits for go(). Throws input_error.
  explicit child_process(const command& what);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Kills the program if it still runs.
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// Starts the program. Throws input_error if it cannot be executed.
  void go();
  /// Whether the program has ended; waits for at most `most_ms` (-1: forever).
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

/// The signal that asked this process to end; 0 if there was none.
int interrupted_by() noexcept;

/// Ends this process by that signal, as if it had not been caught.
[[noreturn]] void end_by_signal(int signal);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
