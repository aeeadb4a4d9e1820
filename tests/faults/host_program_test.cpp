// Tests things that a program may do while it records: check errno, cancel threads, close all
// descriptors, register fork handlers, fill the disk, and record in handlers.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::recover_all;
using support::status_of_child;

namespace {

void* record_until_cancelled(void*) {
  for (;;) {
    { LOTUS_SCOPE("until cancelled"); }
    pthread_testcancel();
  }
}

bool handlers_record = false;
void record_in_handler(const char* name) {
  if (!handlers_record) return;
  LOTUS_SCOPE("known in handlers");
  LOTUS_SCOPE_DYNAMIC(std::string(name) + std::to_string(getpid()));
}
// These fork handlers are registered before those of the library. So they run in the parent while
// the library holds all its locks, and in the child before the library has noticed that the process
// is a child.
__attribute__((constructor(101))) void register_fork_handlers() {
  pthread_atfork([] { record_in_handler("prepare"); }, [] { record_in_handler("parent"); },
                 [] { record_in_handler("child"); });
}

}  // namespace

TEST_CASE("a scope does not change errno") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread([&wrong] {
      char byte = 0;
      {
        LOTUS_SCOPE("read");
        if (read(-1, &byte, 1) >= 0) ++wrong;
      }
      if (errno != EBADF) ++wrong;
    }).join();
  }
  lotus::stop();
  CHECK(wrong == 0);
}

TEST_CASE("a thread that records can be canceled") {
  const support::temp_directory run;
  lotus::options o = options_for(run);
  o.ring_records = 64;  // a small ring, so that the drain thread runs all the time
  REQUIRE(lotus::start(o));
  for (int i = 0; i < 20; ++i) {
    pthread_t thread{};
    REQUIRE(pthread_create(&thread, nullptr, record_until_cancelled, nullptr) == 0);
    usleep(2000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED);
  }
  { LOTUS_SCOPE("afterwards"); }
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Safterwards") == 1);
}

TEST_CASE("no line is written to the program's own files after it closed all descriptors") {
  const support::temp_directory run;
  const std::string own = (run.path() / "own").string();
  CHECK(status_of_child([&] {
          lotus::start(options_for(run));
          { LOTUS_SCOPE("before"); }
          lotus::flush();
          for (int fd = 3; fd < 1024; ++fd) close(fd);
          for (int i = 0; i < 12; ++i) {
            const int fd =
                open((own + std::to_string(i)).c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
            if (write(fd, "precious\n", 9) != 9) _exit(1);
          }
          for (int i = 0; i < 3; ++i) LOTUS_SCOPE("after");
        }) == 0);
  for (int i = 0; i < 12; ++i) {
    std::ifstream in{own + std::to_string(i)};
    CHECK(std::string{std::istreambuf_iterator<char>{in}, {}} == "precious\n");
  }
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 1);
  CHECK(count_named(lines, "Safter") == 3);
}

TEST_CASE("scopes in the program's fork handlers do not hang, and go to the right process's log") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  { LOTUS_SCOPE("known in handlers"); }
  alarm(250);
  handlers_record = true;
  const int status = status_of_child([] {
    handlers_record = false;
    for (int i = 0; i < 5; ++i) LOTUS_SCOPE("in the child");
  });
  handlers_record = false;
  alarm(0);
  lotus::stop();
  CHECK(status == 0);
  std::size_t of_child = 0;
  for (const auto& line : read_logs(run.path())) {
    if (line.tid != static_cast<std::uint32_t>(getpid())) {
      ++of_child;
      CHECK(line.name == "Sin the child");
    }
  }
  CHECK(of_child == 5);
}

TEST_CASE("a child that records nothing adds nothing to its parent's information file") {
  const support::temp_directory run;
  lotus::options o = options_for(run);
  o.cpu_time = false;  // otherwise, there would also be records of CPU time
  REQUIRE(lotus::start(o));
  for (int i = 0; i < 10; ++i) LOTUS_SCOPE("parent");
  lotus::flush();
  CHECK(status_of_child([] {}) == 0);
  for (int i = 0; i < 90; ++i) LOTUS_SCOPE("parent");
  lotus::stop();
  std::string records;
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::ifstream in{entry.path()};
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("records ", 0) == 0) records += line + ';';
    }
  }
  CHECK(records == "records 100 0;");
}

TEST_CASE("names that were first used while the disk was full survive a kill") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    lotus::start(options_for(run));
    { LOTUS_SCOPE("first"); }
    lotus::flush();
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit full{1000, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    for (int i = 0; i < 70; ++i) LOTUS_SCOPE_DYNAMIC(std::string(1000, 'a') + std::to_string(i));
    setrlimit(RLIMIT_FSIZE, &limit);
    lotus::flush();
    { LOTUS_SCOPE("Decode"); }
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "SDecode") == 1);
  CHECK(lines.size() == 72);
}

TEST_CASE("a child's first record may come from a handler that interrupted malloc") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  for (int i = 0; i < 10; ++i) {
    CHECK(status_of_child([] {
            struct sigaction action {};
            action.sa_handler = [](int) { LOTUS_SCOPE("handler"); };
            action.sa_flags = SA_RESTART;
            sigaction(SIGALRM, &action, nullptr);
            const itimerval often{{0, 50}, {0, 50}};
            setitimer(ITIMER_REAL, &often, nullptr);
            for (int n = 0; n < 200'000; ++n) {
              void* volatile memory = std::malloc(static_cast<std::size_t>(n % 1000 + 1));
              std::free(memory);
            }
            const itimerval never{};
            setitimer(ITIMER_REAL, &never, nullptr);
          }) == 0);
  }
  lotus::stop();
}
