#include "base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

constexpr std::array<int, 4> ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// Signals that end a process by default. lotus-tool forwards them to the program that it runs,
/// because users and job schedulers send them. It ignores only SIGPIPE and SIGXFSZ: the kernel
/// sends these two to lotus-tool when one of its writes fails, and then write() returns an error
/// too.
constexpr std::array<int, 10> handled_signals{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                              SIGUSR2, SIGALRM, SIGXCPU, SIGPIPE, SIGXFSZ};

bool is_ending(int signal) noexcept {
  return std::find(ending_signals.begin(), ending_signals.end(), signal) != ending_signals.end();
}

bool is_of_our_writing(int signal) noexcept {
  return signal == SIGPIPE || signal == SIGXFSZ;
}

// Where the signal handler forwards signals: a process id; if negative, a process group; 0:
// nowhere.
volatile sig_atomic_t target = 0;
volatile sig_atomic_t asked_by = 0;
std::array<struct sigaction, handled_signals.size()> before{};
// How many objects of the types child_process and until_interrupted exist. The first of them
// installs the signal handlers and saves the previous handlers in `before`.
int handled_by = 0;

void pass_on(int signal, siginfo_t* from, void* /*context*/) {
  const int saved = errno;
  if (is_ending(signal)) asked_by = signal;
  // If the program is in the process group of this process, the kernel sends signals of the
  // terminal, such as Ctrl-C, to both. Do not forward these signals, or the program would receive
  // them twice.
  const bool has_it = target > 0 && from->si_code == SI_KERNEL;
  if (target != 0 && !has_it) ::kill(target, signal);
  errno = saved;
}

bool is_ignored(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

void forward_signals(bool own_group) {
  if (handled_by++ > 0) return;
  struct sigaction forwarding {};
  forwarding.sa_sigaction = pass_on;
  forwarding.sa_flags = SA_SIGINFO;
  sigemptyset(&forwarding.sa_mask);
  struct sigaction ignoring {};
  ignoring.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < handled_signals.size(); ++i) {
    const int signal = handled_signals[i];
    ::sigaction(signal, nullptr, &before[i]);
    if (is_ignored(before[i])) {
      // A shell script makes every job that it starts with '&' ignore SIGINT and SIGQUIT. If the
      // program has its own process group, lotus-tool forwards these two signals nevertheless.
      const bool by_the_shell = signal == SIGINT || signal == SIGQUIT;
      // Any other signal that lotus-tool was started to ignore stays ignored, because the program
      // must ignore it too. For example, nohup makes a process ignore SIGHUP.
      if (!own_group || !by_the_shell) continue;
      before[i].sa_handler = SIG_DFL;
    }
    ::sigaction(signal, is_of_our_writing(signal) ? &ignoring : &forwarding, nullptr);
  }
}

void restore_signals() noexcept {
  for (std::size_t i = 0; i < handled_signals.size(); ++i) {
    ::sigaction(handled_signals[i], &before[i], nullptr);
  }
}

void stop_forwarding() noexcept {
  if (--handled_by == 0) restore_signals();
}

[[noreturn]] void cannot_start(const std::string& program, int error) {
  throw input_error(program + ": cannot be run: " + error_text(error));
}

/// Runs in the child process after fork(), until exec() replaces it by the program. Must not
/// allocate, because another thread of the parent may have held malloc's lock during fork().
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int go,
                         int error_pipe, bool own_group) {
  if (own_group) ::setpgid(0, 0);
  // Only for a program with its own process group: ask the kernel to kill the program if
  // lotus-tool, its parent process, dies.
  if (own_group) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char start = 0;
  if (::read(go, &start, 1) != 1) ::_exit(127);
  if (output >= 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);  // NOLINT(*-vararg)
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  // Undo the changes that forward_signals() made in the parent process. exec() then keeps ignored
  // signals ignored, as nohup requires, and resets signals with a handler to their default.
  restore_signals();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  const int error = errno;
  if (::write(error_pipe, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Returns the environment of this process with the variables in `added`. Each of them replaces a
/// variable of the same name, if there is one.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const std::string name = entry.substr(0, entry.find('='));
    const bool replaced =
        std::any_of(added.begin(), added.end(), [&name](const auto& a) { return a.first == name; });
    if (!replaced) result.push_back(entry);
  }
  for (const auto& [name, value] : added) {
    result.push_back(name);
    result.back().append(1, '=').append(value);
  }
  return result;
}

}  // namespace

child_process::child_process(const command& what) : what_(what) {
  std::array<int, 2> go{};
  std::array<int, 2> failed{};
  int output = -1;
  if (!what.output.empty()) {
    output =
        ::open(what.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);  // NOLINT
    if (output < 0) cannot_start(what.output, errno);
  } else if (what.output_to >= 0) {
    output = ::fcntl(what.output_to, F_DUPFD_CLOEXEC, 0);  // NOLINT(*-vararg)
    if (output < 0) cannot_start(what.arguments[0], errno);
  }
  if (::pipe2(go.data(), O_CLOEXEC) != 0 || ::pipe2(failed.data(), O_CLOEXEC) != 0) {
    cannot_start(what.arguments[0], errno);
  }
  std::vector<std::string> environment = environment_with(what.environment);
  std::vector<std::string> arguments = what.arguments;
  const std::vector<char*> environment_list = pointers(environment);
  const std::vector<char*> argument_list = pointers(arguments);
  const bool own_group = output >= 0;
  forward_signals(own_group);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(go[1]);  // or the child would wait forever if the parent is killed before go()
    become(argument_list.data(), environment_list.data(), output, go[0], failed[1], own_group);
  }
  const int error = errno;
  ::close(go[0]);
  ::close(failed[1]);
  if (output >= 0) ::close(output);
  go_pipe_ = go[1];
  error_pipe_ = failed[0];
  if (pid_ < 0) cannot_start(what.arguments[0], error);
  if (own_group) ::setpgid(pid_, pid_);
  target = own_group ? -pid_ : pid_;
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

void child_process::go() {
  const char start = 1;
  if (::write(go_pipe_, &start, 1) != 1) cannot_start(what_.arguments[0], errno);
  int error = 0;
  ssize_t got = -1;
  do {
    got = ::read(error_pipe_, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    ended(-1);
    cannot_start(what_.arguments[0], error);
  }
}

bool child_process::ended(int max_ms) {
  while (!reaped_) {
    pollfd wait{pidfd_, POLLIN, 0};
    // If a signal has asked lotus-tool to end, a program in its own process group gets 2 s to end;
    // then the code below kills the group.
    constexpr int patience_ms = 2000;
    const bool impatient = asked_by != 0 && target < 0;
    const int limit_ms = impatient ? patience_ms : max_ms;
    const int ready = pidfd_ >= 0 ? ::poll(&wait, 1, limit_ms) : 1;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && !impatient) return false;
    if (ready == 0) ::kill(target, SIGKILL);
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, 0);
    if (got < 0 && errno == EINTR) continue;
    reaped_ = true;
    state_.by_signal = WIFSIGNALED(status);
    state_.status = state_.by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return true;
}

child_process::~child_process() {
  if (pid_ > 0) {
    // If `target` is a process group, kill it even if the program itself has ended: the group may
    // contain processes that the program has started.
    if (target < 0 || !reaped_) ::kill(target, SIGKILL);
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
  }
  target = 0;
  stop_forwarding();
  for (const int fd : {pidfd_, go_pipe_, error_pipe_}) {
    if (fd >= 0) ::close(fd);
  }
}

exit_state run_command(const command& what) {
  exit_state state;
  {
    child_process child(what);
    child.go();
    child.ended(-1);
    state = child.state();
  }
  if (interrupted_by() != 0) throw interrupted(interrupted_by());
  return state;
}

int interrupted_by() noexcept {
  return asked_by;
}

until_interrupted::until_interrupted() {
  forward_signals(true);
}

until_interrupted::~until_interrupted() {
  stop_forwarding();
}

void end_by_signal(int signal) {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  static_cast<void>(::raise(signal));
  std::_Exit(128 + signal);  // NOLINT: reached if the parent process has blocked the signal
}

}  // namespace lotus::tool
