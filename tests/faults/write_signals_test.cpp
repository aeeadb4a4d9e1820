// Tests writes that raise signals: to a pipe without a reader, and beyond the maximum file size.
// The library's writes must not kill the program, and the program's own writes must still raise
// signals.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "catch.hpp"
#include "lotus/base/file.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/message.hpp"
#include "messages.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::read_logs;
using support::record;

namespace {

/// Runs `body` in a child process in which SIGPIPE and SIGXFSZ have their default action: they kill
/// the process. Returns the child's wait status.
template <class Body>
int status_of_child(Body&& body) {
  return support::status_of_child([&] {
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    body();
  });
}

void limit_files(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

/// Returns a descriptor that writes to a pipe without a reader.
int unread_pipe() {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) _exit(2);
  close(ends[0]);
  return ends[1];
}

bool pending(int number) {
  sigset_t set;
  sigpending(&set);
  return sigismember(&set, number) == 1;
}

}  // namespace

TEST_CASE("a process that may not write any file continues") {
  const support::temp_directory run;
  CHECK(status_of_child([&] {
          limit_files(0);
          lotus::start(support::options_for(run));
          record("nowhere", 1000);
          lotus::stop();
          lotus::collector::resume();
        }) == 0);
}

TEST_CASE("a message to a pipe without a reader does not kill the process") {
  const support::temp_directory run;
  lotus::options o = support::options_for(run);
  o.on_message = nullptr;
  CHECK(status_of_child([&] {
          dup2(unread_pipe(), STDERR_FILENO);
          { std::ofstream{run.prefix() + "_worker_pid_1"}; }
          lotus::start(o);  // prints a message, because there are logs already
          record("quiet", 10);
          lotus::stop();
          lotus::detail::say("nobody hears this");
        }) == 0);
  CHECK(count_named(read_logs(run.path()), "Squiet") == 10);
  // In the child process, stderr is a pipe without a reader. If the program itself writes to
  // stderr, it must still get SIGPIPE.
  const int status = status_of_child([&] {
    dup2(unread_pipe(), STDERR_FILENO);
    lotus::start(o);
    lotus::stop();
    if (write(STDERR_FILENO, "x", 1) != 1) _exit(3);
  });
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE));
}

TEST_CASE("at RLIMIT_FSIZE records wait as on a full disk") {
  const support::temp_directory run;
  CHECK(status_of_child([&] {
          lotus::options o = support::options_for(run);
          o.ring_records = 64;
          o.on_message = &support::collected_messages::add;
          rlimit before{};
          getrlimit(RLIMIT_FSIZE, &before);
          lotus::start(o);
          record("waits", 1);
          lotus::flush();
          limit_files(1000);
          record("waits", 20'000);
          for (int i = 0; i < 70; ++i) {
            LOTUS_SCOPE_DYNAMIC(std::string(1000, 'a') + std::to_string(i));
          }
          limit_files(before.rlim_cur);
          lotus::stop();
          const auto messages = support::collected_messages::all();
          if (messages.size() != 2 || lotus::dropped() != 0) _exit(1);
          if (messages[0].find("File too large") == std::string::npos) _exit(2);
        }) == 0);
  CHECK(count_named(read_logs(run.path()), "Swaits") == 20'001);
}

TEST_CASE("write_all removes only its own SIGPIPE and restores the thread's signal mask") {
  const int fd = unread_pipe();
  sigset_t before;
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  CHECK(lotus::detail::write_all(fd, "x", 1) == EPIPE);
  CHECK_FALSE(pending(SIGPIPE));
  pthread_kill(pthread_self(), SIGPIPE);
  CHECK(lotus::detail::write_all(fd, "x", 1) == EPIPE);
  CHECK(pending(SIGPIPE));
  int taken = 0;
  sigwait(&pipe_only, &taken);
  CHECK(taken == SIGPIPE);
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, &before, &now);
  CHECK(sigismember(&now, SIGPIPE) == 1);
  CHECK(sigismember(&now, SIGXFSZ) == 0);
  close(fd);
}
