// Tests programs that restrict their own system calls while they record, or that run in a namespace
// with different clocks.

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
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
#include "../shared_page.hpp"
#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::record;
using support::recover_all;

namespace {

bool install(sock_filter* code, std::size_t instructions) {
  const sock_fprog program{static_cast<unsigned short>(instructions), code};
  constexpr unsigned all_threads = 1;  // the value of SECCOMP_FILTER_FLAG_TSYNC
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads, &program) == 0;
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
  return install(code.data(), code.size());
}

/// Makes mmap(2) fail with EPERM from now on, in all threads of this process, except for stacks.
bool forbid_memory() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),
                        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_STACK, 1, 0),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(code, std::size(code));
}

/// Kills this process if it makes another system call than `calls` from now on.
bool permit_only(const std::vector<unsigned>& calls) {
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return install(code.data(), code.size());
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool has_sanitizer = true;  // sanitizers make system calls of their own
#elif defined(__has_feature)
constexpr bool has_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool has_sanitizer = false;
#endif

/// Returns whether `lines` are `times` scopes "Given" of 5 ms and "Outer" of at least 20 ms, each
/// of which began within the last two minutes.
void check_times(const std::vector<support::log_line>& lines, std::size_t times) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t now_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  CHECK(count_named(lines, "SOuter") == times);
  CHECK(count_named(lines, "SGiven") == times);
  for (const auto& line : lines) {
    CAPTURE(line.name, line.start_ns, line.duration_ns);
    CHECK(line.end_ns() <= now_ns + 1'000'000'000);
    CHECK(line.start_ns >= now_ns - 120'000'000'000);
    CHECK(line.duration_ns >= (line.name == "SGiven" ? 4'000'000 : 20'000'000));
    CHECK(line.duration_ns <= 60'000'000'000);
  }
}

void record_both() {
  {
    LOTUS_SCOPE("Outer");
    usleep(20'000);
  }
  const auto end = std::chrono::steady_clock::now();
  lotus::record_span("Given", end - std::chrono::milliseconds(5), end);
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

TEST_CASE("refused memory and writes drop records, which are counted, and harm nobody else") {
  if (has_sanitizer) return lotus_test::skip("a sanitizer needs memory");
  const support::temp_directory run;
  const support::temp_directory beside;
  support::shared_page lost{beside.path() / "lost"};
  const int status = support::status_of_child([&] {
    auto o = options_for(run);
    o.ring_records = 64;
    o.cpu_time = false;  // lost records of the time off the CPU would be counted too
    if (!lotus::start(o)) _exit(1);
    record("before", 100);
    lotus::flush();
    if (!forbid({SYS_mmap, SYS_write, SYS_pwrite64, SYS_prctl}, EPERM)) _exit(77);
    record("after", 10'000);
    lost[0] = lotus::dropped();
    lotus::stop();
    _exit(0);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no seccomp here");
  CHECK(status == 0);
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 100);
  CHECK(lost[0] > 0);
  CHECK(count_named(lines, "Safter") + lost[0] == 10'000);
}

TEST_CASE("a thread of the library that finds memory forbidden does not abort the program") {
  if (has_sanitizer) return lotus_test::skip("a sanitizer needs memory");
  const support::temp_directory run;
  const int status = support::status_of_child([&] {
    auto o = options_for(run);
    o.wait_samples_per_s = 0;
    if (!lotus::start(o)) _exit(1);
    record("before", 100);
    lotus::stop();
    // The drain thread, which has not allocated yet, now starts the thread that samples waits.
    if (!forbid_memory()) _exit(77);
    o.wait_samples_per_s = 10;
    lotus::start(o);
    for (int i = 0; i < 20; ++i) {
      record("after", 10);
      usleep(10'000);
    }
    lotus::stop();
    _exit(0);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no seccomp here");
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Sbefore") == 100);
}

TEST_CASE("recorded times are right in a time namespace whose monotonic clock is years ahead") {
  const support::temp_directory run;
  const int status = support::status_of_child([&] {
    constexpr int new_time = 0x80;  // the value of CLONE_NEWTIME
    if (unshare(new_time) != 0) _exit(77);
    std::ofstream{"/proc/self/timens_offsets"} << "monotonic 100000000 0\nboottime 100000000 0\n";
    const pid_t child = fork();
    if (child == 0) {
      alarm(250);
      if (!lotus::start(options_for(run))) _exit(1);
      record_both();
      lotus::stop();
      _exit(0);
    }
    int of_child = 0;
    waitpid(child, &of_child, 0);
    _exit(of_child == 0 ? 0 : 1);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no time namespaces");
  CHECK(status == 0);
  check_times(read_logs(run.path()), 1);
}

TEST_CASE("times are right in a forked child whose time namespace has other clocks") {
  const support::temp_directory run;
  const char* const offsets = GENERATE("monotonic 100000000 0\nboottime 100000000 0\n",
                                       "monotonic 5000 0\n", "monotonic -1 0\nboottime -1 0\n");
  const int status = support::status_of_child([&] {
    if (!lotus::start(options_for(run))) _exit(1);
    record_both();
    constexpr int new_time = 0x80;  // the value of CLONE_NEWTIME
    if (unshare(new_time) != 0) _exit(77);
    std::ofstream{"/proc/self/timens_offsets"} << offsets;
    const pid_t child = fork();
    if (child == 0) {
      alarm(250);
      // In between, the drain thread compares the clocks.
      for (int i = 0; i < 3; ++i) {
        record_both();
        lotus::flush();
        usleep(150'000);
      }
      lotus::stop();
      _exit(0);
    }
    int of_child = 0;
    waitpid(child, &of_child, 0);
    lotus::stop();
    _exit(of_child == 0 ? 0 : 1);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no time namespaces");
  CHECK(status == 0);
  check_times(read_logs(run.path()), 4);
}

TEST_CASE("after start, the library makes only the system calls that the documentation names") {
  if (has_sanitizer) return lotus_test::skip("a sanitizer makes system calls of its own");
  const support::temp_directory run;
  // The snapshot is stored next to the run, so that it is deleted together with `run`.
  const auto folder = run.path() / "run";
  const bool keep = GENERATE(false, true);
  const int status = support::status_of_child([&] {
    auto o = options_for(run);
    o.log_file = folder / "log";
    o.ring_records = 64;
    o.keep_bytes = keep ? 300'000 : 0;
    o.wait_samples_per_s = 100;
    if (!lotus::start(o)) _exit(1);
    record("before", 100);
    lotus::flush();
    // The list in docs/reference/security.md, with the other names that some machines have.
    std::vector<unsigned> calls{SYS_clock_gettime,
                                SYS_close,
                                SYS_fallocate,
                                SYS_fcntl,
                                SYS_flock,
                                SYS_fstat,
                                SYS_fstatfs,
                                SYS_ftruncate,
                                SYS_futex,
                                SYS_getdents64,
                                SYS_geteuid,
                                SYS_getpid,
                                SYS_getrusage,
                                SYS_gettid,
                                SYS_kill,
                                SYS_linkat,
                                SYS_lseek,
                                SYS_madvise,
                                SYS_mkdirat,
                                SYS_mmap,
                                SYS_munmap,
                                SYS_newfstatat,
                                SYS_openat,
                                SYS_pread64,
                                SYS_process_vm_readv,
                                SYS_pwrite64,
                                SYS_read,
                                SYS_readlinkat,
                                SYS_renameat,
                                SYS_rt_sigpending,
                                SYS_rt_sigprocmask,
                                SYS_rt_sigtimedwait,
                                SYS_sched_getaffinity,
                                SYS_sched_getscheduler,
                                SYS_tgkill,
                                SYS_unlinkat,
                                SYS_write};
    // Calls of the C library: sleeping, starting and ending threads and the process.
    for (const int call : {SYS_clock_nanosleep, SYS_nanosleep, SYS_clone, SYS_clone3, SYS_exit,
                           SYS_exit_group, SYS_mprotect, SYS_prctl, SYS_rseq, SYS_set_robust_list,
                           SYS_restart_syscall, SYS_rt_sigreturn}) {
      calls.push_back(static_cast<unsigned>(call));
    }
#if defined(SYS_readlink)
    calls.push_back(SYS_readlink);
#endif
    if (!permit_only(calls)) _exit(77);
    for (unsigned i = 0; i < 40; ++i) {
      std::thread{[i] {
        record("of_thread", 100);
        record("name" + std::to_string(i), 1);
        LOTUS_SCOPE_AGGREGATED("Aggregated");
        LOTUS_BATCH_PREPROCESSED(i);
        LOTUS_BATCH_QUEUED(i);
        lotus::counter("Counter", i);
      }}.join();
      lotus::batch_wait wait;
      usleep(10'000);
      wait.consumed(i);
      if (i == 20) lotus::snapshot("why");
    }
    lotus::stop();
    _exit(0);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no seccomp here");
  CHECK(status == 0);
  if (!keep) CHECK(count_named(read_logs(folder), "Sof_thread") == 4000);
}
