// Starts programs without a shell and ensures that they end.
#ifndef LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
#define LOTUS_TOOL_BASE_CHILD_PROCESS_HPP

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

struct command {
  /// Program and its arguments. The program is searched in PATH unless its name contains '/'.
  std::vector<std::string> arguments;
  /// Variables to add to the environment of this process.
  std::vector<std::pair<std::string, std::string>> environment;
  /// File to which the program's stdout and stderr are appended; the program then has an empty
  /// stdin. If "", the program inherits stdin, stdout and stderr of this process.
  std::string output;
  /// Instead of `output`: descriptor of an open file or pipe; -1: none. The caller closes it.
  int output_to = -1;
};

/// Thrown by run_command() if a signal has asked this process to end, after the program has ended.
struct interrupted : std::runtime_error {
  explicit interrupted(int by) : std::runtime_error("interrupted"), signal(by) {}
  int signal;
};

struct exit_state {
  int status = 0;  ///< exit status, or 128 + the signal that ended the program, as in shells
  bool by_signal = false;
};

/// Runs a program and waits for its end. The program gets its own process group unless it shares
/// the terminal of this process (no `output`).
///
/// If SIGINT, SIGTERM, SIGHUP or SIGQUIT arrives while the program runs, the function forwards the
/// signal, kills the program and all other processes in its group if the program still runs after 2
/// s, and throws `interrupted`. Other signals that job schedulers send are forwarded to the
/// program. Throws input_error if the program cannot be started. Only one program may run at a
/// time.
exit_state run_command(const command& what);

/// Runs a program in three steps, so that the caller can do something while the program runs.
class child_process {
 public:
  /// Forks; the child process waits for go(). Throws input_error.
  explicit child_process(const command& what);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Kills the program if it still runs.
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// Starts the program. Throws input_error if it cannot be executed.
  void go();
  /// Waits for at most `max_ms` (-1: forever). Returns whether the program has ended.
  bool ended(int max_ms);
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

/// Returns the signal that asked this process to end; 0 if there was none.
int interrupted_by() noexcept;

/// While the object exists, SIGINT and the other signals that ask this process to end do not end
/// it, even if no program is running; the caller reads them with interrupted_by().
class until_interrupted {
 public:
  until_interrupted();
  until_interrupted(const until_interrupted&) = delete;
  until_interrupted& operator=(const until_interrupted&) = delete;
  ~until_interrupted();
};

/// Ends this process by `signal`, as if the signal had not been caught.
[[noreturn]] void end_by_signal(int signal);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
