// Tests programs that restrict their own system calls while they record, or that run in a namespace
// with different clocks.

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../recording.hpp"
#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::recover_all;

namespace {

void record(const char* name, int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE_DYNAMIC(name);
}

/// Makes the system calls `calls` fail with `error` from now on, in all existing and future threads
/// of this process.
bool forbid(const std::vector<unsigned>& calls, unsigned error) {
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  constexpr unsigned all_threads = 1;  // the value of SECCOMP_FILTER_FLAG_TSYNC
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads, &program) == 0;
}

}  // namespace

TEST_CASE("a system call filter installed after start loses no record of existing threads") {
  const support::temp_directory run;
  // true: system calls fail as in a sandbox. false: they fail as on a file system that became
  // read-only.
  const bool sandbox = GENERATE(true, false);
  const int status = support::status_of_child([&] {
    auto o = options_for(run);
    o.ring_records = 64;
    o.cpu_time = false;
    if (!lotus::start(o)) _exit(1);
    record("before", 100);
    lotus::flush();
    const bool filtered =
        sandbox
            ? forbid({SYS_openat, SYS_mkdirat, SYS_renameat, SYS_unlinkat, SYS_prctl}, EPERM)
            : forbid({SYS_openat, SYS_write, SYS_pwrite64, SYS_ftruncate, SYS_fallocate}, EROFS);
    if (!filtered) _exit(77);
    record("after", 30);
    std::thread{[] { record("of_thread", 30); }}.join();
    raise(SIGKILL);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no seccomp here");
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 100);
  CHECK(count_named(lines, "Safter") == 30);
  // On the simulated read-only file system, the ring file cannot grow, so the new thread gets a
  // ring in the file's spare space.
  CHECK(count_named(lines, "Sof_thread") == 30);
}

TEST_CASE("recorded times are right in a time namespace whose monotonic clock is years ahead") {
  const support::temp_directory run;
  const int status = support::status_of_child([&] {
    constexpr int new_time = 0x80;  // the value of CLONE_NEWTIME
    if (unshare(new_time) != 0) _exit(77);
    std::ofstream{"/proc/self/timens_offsets"} << "monotonic 100000000 0\nboottime 100000000 0\n";
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      if (!lotus::start(options_for(run))) _exit(1);
      {
        LOTUS_SCOPE("Outer");
        usleep(20'000);
      }
      const auto end = std::chrono::steady_clock::now();
      lotus::record_span("Given", end - std::chrono::milliseconds(5), end);
      lotus::stop();
      _exit(0);
    }
    int of_child = 0;
    waitpid(child, &of_child, 0);
    _exit(of_child == 0 ? 0 : 1);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no time namespaces");
  CHECK(status == 0);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t now_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  const auto lines = read_logs(run.path());
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) {
    CAPTURE(line.name, line.start_ns, line.duration_ns);
    CHECK(line.end_ns() <= now_ns + 1'000'000'000);
    CHECK(line.start_ns >= now_ns - 120'000'000'000);
    CHECK(line.duration_ns >= (line.name == "SGiven" ? 4'000'000 : 20'000'000));
    CHECK(line.duration_ns <= 60'000'000'000);
  }
}
