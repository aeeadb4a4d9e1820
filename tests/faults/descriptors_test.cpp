// Tests programs that close all descriptors, as daemons do, and then get the same numbers for their
// own files. Also tests programs that are started without the descriptors 0 to 2.

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "drain_thread.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::record;
using support::recover_all;

namespace {

/// The test opens its own files with the descriptors `first` to `numbers` - 1. These include all
/// numbers that the library used before.
constexpr int numbers = 200;
constexpr int first = 3;

template <class Body>
pid_t child(Body&& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(250);
  body();
  exit(0);
}

int status_of(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

void close_all() {
  for (int fd = first; fd < 1024; ++fd) close(fd);
}

/// Opens the program's files (or a directory) until every descriptor below `numbers` is in use.
void take_all(const std::string& folder, bool directories) {
  for (int number = first; number < numbers; ++number) {
    const std::string path = folder + "/own" + std::to_string(number);
    const int fd = directories ? open(folder.c_str(), O_RDONLY | O_DIRECTORY)
                               : open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (!directories && write(fd, "precious\n", 9) != 9) _exit(2);
    if (fd == number) continue;
    // EBUSY: another thread is just opening a file that gets this number.
    while (dup2(fd, number) != number) {
      if (errno != EBUSY) _exit(3);
    }
    close(fd);
  }
}

void record_on_threads(const char* name, int threads, int times) {
  for (int i = 0; i < threads; ++i) std::thread{record, name, times}.join();
}

void check_precious(const std::string& folder, bool directories) {
  if (directories) {
    CHECK(support::fs::is_empty(folder));
    return;
  }
  for (int number = first; number < numbers; ++number) {
    std::ifstream in{folder + "/own" + std::to_string(number)};
    CHECK(std::string{std::istreambuf_iterator<char>{in}, {}} == "precious\n");
  }
}

/// Returns the lowest open descriptor number that is at least `from`; -1 if there is none.
int lowest_open(int from = 0) {
  for (int fd = from; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return fd;
  }
  return -1;
}

}  // namespace

TEST_CASE("the library does not use descriptors that the program closed and opened again") {
  for (const bool directories : {false, true}) {
    const support::temp_directory run;
    const support::temp_directory elsewhere;
    const std::string own = elsewhere.path().string();
    const pid_t pid = child([&] {
      if (chdir(run.path().c_str()) != 0) _exit(1);
      lotus::options o = options_for(run);
      o.log_file = "lotustrace_log";
      o.ring_records = 64;
      o.on_message = [](const char* message) {
        std::fprintf(stderr, "%s\n", message);
        _exit(4);
      };
      // With this long interval and both waits for the drain thread, no drain opens a file while
      // take_all() runs. Otherwise, the file could get a number that take_all() has not used yet.
      // For the same reason no waits are sampled.
      o.drain_interval_ms = 10'000;
      o.wait_samples_per_s = 0;
      lotus::start(o);
      support::wait_until_drain_thread_rests();
      record("before", 100);
      lotus::flush();
      support::wait_until_drain_thread_rests();  // the full ring has requested a drain
      if (chdir("/") != 0) _exit(1);
      close_all();
      take_all(own, directories);
      record("after", 20'000);
      // The rings of these threads do not fit into the ring file, and there are more logs than the
      // library keeps open. So the library must open files again.
      record_on_threads("after", 5, 1000);
      std::vector<std::thread> threads;
      for (int i = 0; i < 80; ++i) threads.emplace_back(record, "after", 200);
      for (std::thread& t : threads) t.join();
      lotus::stop();
      for (int number = first; number < numbers; ++number) {
        if (fcntl(number, F_GETFD) < 0) _exit(5);
      }
    });
    CHECK(status_of(pid) == 0);
    check_precious(own, directories);
    const auto lines = read_logs(run.path());
    CHECK(count_named(lines, "Sbefore") == 100);
    CHECK(count_named(lines, "Safter") == 41'000);
    CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
  }
}

TEST_CASE("a program that closed the descriptor of its ring file is not mistaken for dead") {
  const support::temp_directory run;
  const support::temp_directory elsewhere;
  int ready[2] = {-1, -1};
  REQUIRE(pipe(ready) == 0);
  const pid_t pid = child([&] {
    lotus::options o = options_for(run);
    o.drain_interval_ms = 60'000;
    o.wait_samples_per_s = 0;  // as in the first test case
    lotus::start(o);
    support::wait_until_drain_thread_rests();
    record("kept", 50);
    dup2(ready[1], 1000);
    for (int fd = first; fd < 1000; ++fd) close(fd);
    take_all(elsewhere.path().string(), false);
    if (write(1000, "x", 1) != 1) _exit(1);
    record("kept", 50);
    std::thread{record, "of_a_new_ring", 30}.join();
    if (write(1000, "x", 1) != 1) _exit(1);
    pause();
  });
  char byte = 0;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(read(ready[0], &byte, 1) == 1);
    const int directory = open(run.path().c_str(), O_RDONLY | O_DIRECTORY);
    const auto found = lotus::detail::recover_directory(directory, nullptr);
    close(directory);
    CHECK(found.running == 1);
    CHECK(found.records == 0);
  }
  kill(pid, SIGKILL);
  status_of(pid);
  close(ready[0]);
  close(ready[1]);
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Skept") == 100);
  CHECK(count_named(lines, "Sof_a_new_ring") == 30);
  check_precious(elsewhere.path().string(), false);
}

TEST_CASE("if another directory has the run directory's path, that is reported and lines wait") {
  const support::temp_directory parent;
  const std::string place = (parent.path() / "logs").string();
  const std::string aside = (parent.path() / "aside").string();
  mkdir(aside.c_str(), 0700);
  const auto exchange = [&] {
    if (renameat2(AT_FDCWD, place.c_str(), AT_FDCWD, aside.c_str(), RENAME_EXCHANGE) != 0) _exit(1);
  };
  const pid_t pid = child([&] {
    static std::atomic<int> reported{0};
    lotus::options o;
    o.log_file = place + "/lotustrace_log";
    o.on_message = [](const char* message) {
      if (std::string{message}.find("cannot append") == 0) ++reported;
    };
    lotus::start(o);
    record("waits", 10);
    exchange();
    // While close_all() runs, the drain thread may open a log again, because it still has the
    // directory open. So close_all() is repeated until no descriptor is open.
    do close_all();
    while (lowest_open(first) >= 0);
    lotus::flush();
    record("waits", 10);
    lotus::flush();
    if (reported != 1) _exit(2);
    exchange();
    // rmdir() succeeds only if no log was created in the empty directory.
    if (rmdir(aside.c_str()) != 0) _exit(3);
    lotus::stop();
  });
  CHECK(status_of(pid) == 0);
  CHECK(count_named(read_logs(place), "Swaits") == 20);
}

TEST_CASE("the library does not use descriptors 0 to 2 if the program was started without them") {
  for (const rlim_t most : {rlim_t{1024}, rlim_t{20}}) {
    const support::temp_directory run;
    const pid_t pid = child([&] {
      for (int fd = 0; fd < 1024; ++fd) close(fd);
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = most;
      setrlimit(RLIMIT_NOFILE, &limit);
      lotus::start(options_for(run));
      std::thread{[] { record("printed", 2000); }}.join();
      for (int i = 0; i < 1000; ++i) {
        LOTUS_SCOPE("printed");
        std::printf("what the program prints\n");
        std::fflush(stdout);
      }
      lotus::flush();
      const int lowest = lowest_open();
      if (lowest < first) _exit(1);
      if (most > 64 && lowest < 64) _exit(2);
      lotus::collector::resume();
      lotus::collector::pause();
      if (lowest_open() < first) _exit(3);
      kill(getpid(), SIGKILL);
    });
    const int status = status_of(pid);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    recover_all(run);
    CHECK(count_named(read_logs(run.path()), "Sprinted") == 3000);
  }
}

TEST_CASE("a sampler whose descriptors were closed leaves the program's descriptors alone") {
  const support::temp_directory run;
  const support::temp_directory elsewhere;
  const pid_t pid = child([&] {
    setenv("LOTUS_COLLECTOR", "builtin", 1);
    lotus::options o = options_for(run);
    o.drain_interval_ms = 10'000;  // a long interval and no samples, as in the first test case
    o.wait_samples_per_s = 0;
    lotus::start(o);
    lotus::collector::resume();
    if (lotus::detail::find_collector() == nullptr) _exit(77);
    lotus::collector::pause();
    support::wait_until_drain_thread_rests();
    close_all();
    take_all(elsewhere.path().string(), false);
    for (int i = 0; i < 3; ++i) {
      lotus::collector::resume();
      usleep(20'000);
      lotus::collector::pause();
    }
    lotus::collector::detach();
    lotus::stop();
    for (int number = first; number < numbers; ++number) {
      if (fcntl(number, F_GETFD) < 0) _exit(5);
    }
  });
  const int status = status_of(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    WARN("skipped: the kernel does not let this process sample itself");
    return;
  }
  CHECK(status == 0);
  check_precious(elsewhere.path().string(), false);
}
