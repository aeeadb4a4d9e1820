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
  /// File to which the program's stdout and stderr are appended; the program's stdin is then empty.
  /// If "", the program inherits stdin, stdout and stderr of this process.
  std::string output;
  /// Descriptor of a file or pipe that becomes the program's stdout and stderr if `output` is "";
  /// -1: do not redirect them. The caller closes the descriptor.
  int output_to = -1;
};

/// Thrown by run_command(), after the program has ended, if a signal asked this process to end.
struct interrupted : std::runtime_error {
  explicit interrupted(int by) : std::runtime_error("interrupted"), signal(by) {}
  int signal;
};

struct exit_state {
  int status = 0;  ///< exit status, or 128 + the signal that ended the program, as in shells
  bool by_signal = false;
};

/// Runs a program and waits for its end. A program with `output` or `output_to` gets its own
/// process group; other programs share the terminal and the process group of this process.
///
/// If SIGINT, SIGTERM, SIGHUP or SIGQUIT arrives while the program runs, the function forwards the
/// signal to the program, waits for the program's end and throws `interrupted`. A program with its
/// own process group has 2 s to end; then its whole group is killed. Other signals that job
/// schedulers send are only forwarded. Throws input_error if the program cannot be started. Only
/// one program may run at a time.
exit_state run_command(const command& what);

/// Runs a program in three steps: the constructor forks, go() starts the program, and ended() waits
/// for its end. The caller can do something between these steps.
class child_process {
 public:
  /// Creates the child process with fork(). The child process executes the program only after go()
  /// is called. Throws input_error if the process cannot be created.
  explicit child_process(const command& what);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Kills the program if it still runs.
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// Starts the program. Throws input_error if it cannot be executed.
  void go();
  /// Waits up to `max_ms` milliseconds (-1: without limit) for the end of the program. Returns
  /// whether the program has ended.
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

/// Returns the signal that asked this process to end; 0 if no such signal has arrived.
int interrupted_by() noexcept;

/// While the object exists, SIGINT and the other signals that ask lotus-tool to end do not end
/// lotus-tool, even if it runs no program. The caller asks interrupted_by() whether such a signal
/// has arrived.
class until_interrupted {
 public:
  until_interrupted();
  until_interrupted(const until_interrupted&) = delete;
  until_interrupted& operator=(const until_interrupted&) = delete;
  ~until_interrupted();
};

/// Ends this process by `signal`, so that its parent sees that the signal has ended it.
[[noreturn]] void end_by_signal(int signal);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_CHILD_PROCESS_HPP
