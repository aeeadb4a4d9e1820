// Tests child processes that are created by _Fork or clone, which run no fork handlers. They must
// record nothing, and their parent must lose no record.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::ended_well;
using support::options_for;
using support::read_logs;
using support::record;

namespace {

/// Whether fork() waits for locks of AddressSanitizer, which a thread of the parent may have held
/// when a child was created without fork handlers.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool fork_waits_for_sanitizer = true;
#elif defined(__has_feature)
constexpr bool fork_waits_for_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool fork_waits_for_sanitizer = false;
#endif

/// Forks without running the handlers of pthread_atfork.
pid_t fork_bare() {
#if defined(__GLIBC_PREREQ)
  #if __GLIBC_PREREQ(2, 34)
  const bool by_glibc = GENERATE(true, false);
  if (by_glibc) return _Fork();
  #endif
#endif
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

/// Stores records of many kinds, `times` records of each kind.
void record_everything(int times) {
  record("of_child", times);
  record("before", times);
  for (int i = 0; i < times; ++i) {
    LOTUS_SCOPE("of_child_too");
    LOTUS_SCOPE_AGGREGATED("aggregated");
    LOTUS_SCOPE_AGGREGATED("aggregated_of_child");
    LOTUS_COUNTER("counted", i);
    lotus::batch_wait wait;
    wait.consumed(static_cast<std::uint64_t>(i));
  }
  lotus::flush();
}

/// Makes madvise(MADV_WIPEONFORK) fail, as on Linux before 4.14.
bool forbid_wiping() {
  constexpr unsigned wipe_on_fork = 18;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wipe_on_fork, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace

// This test case must be the first one in the file, because no session may have been started in
// this process before it.
TEST_CASE("the parent keeps recording if the kernel cannot clear memory in children") {
  const support::temp_directory run;
  const int status = support::status_of_child([&] {
    if (!forbid_wiping()) _exit(77);
    if (!lotus::start(options_for(run))) _exit(1);
    record("before", 10);
    for (int i = 0; i < support::rounds(20); ++i) {
      const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
      if (child == 0) {
        record("of_child_" + std::to_string(i), 100'000);
        exit(0);
      }
      if (!ended_well(child)) _exit(2);
      lotus::flush();
    }
    record("after", 10);
    lotus::stop();
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no seccomp here");
  CHECK(status == 0);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 10);
  CHECK(count_named(lines, "Safter") == 10);
}

TEST_CASE("a child created without fork handlers records nothing and does no harm") {
  const support::temp_directory run;
  auto o = options_for(run);
  o.ring_records = 128;
  o.cpu_time = false;
  REQUIRE(lotus::start(o));
  record("before", 10);
  for (int i = 0; i < 5; ++i) LOTUS_SCOPE_AGGREGATED("aggregated");
  const int end = GENERATE(0, 1, 2);
  const pid_t child = fork_bare();
  if (child == 0) {
    alarm(250);
    record_everything(1000);
    if (lotus::dropped() == 0) _exit(3);
    if (end == 0) exit(0);  // exit() also runs the destructors of static objects
    if (end == 1) lotus::stop();
    if (end == 2) raise(SIGKILL);
    _exit(0);
  }
  // The parent records at the same time as the child, in the ring that both have mapped.
  record("parent", 3000);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == (end == 2 ? SIGKILL : 0));
  record("after", 10);
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 10);
  CHECK(count_named(lines, "Sparent") == 3000);
  CHECK(count_named(lines, "Safter") == 10);
  CHECK(lines.size() == 3020);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
  CHECK(support::count_files(run.path(), ".lotus_info_") == 1);
}

TEST_CASE("a child created without fork handlers ends even if parent threads held all locks") {
  const support::temp_directory run{support::in_memory()};
  auto o = options_for(run);
  o.drain_interval_ms = 1;
  o.ring_records = 64;
  REQUIRE(lotus::start(o));
  std::atomic<bool> done{false};
  std::atomic<int> recorded{0};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&] {
      while (!done && recorded < 1'000'000) {
        record("busy", 50);
        recorded += 50;
        lotus::flush();
      }
    });
  }
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      alarm(250);
      record("of_child_" + std::to_string(i), 500);
      if (fork_waits_for_sanitizer) exit(0);
      // Unlike clone, which created this child, fork() runs the library's fork handlers. They must
      // not wait for locks that threads of the parent held when this child was created.
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        record("of_grandchild", 10);
        exit(0);
      }
      exit(ended_well(grandchild) ? 0 : 1);
    }
    if (ended_well(child)) ++good;
  }
  done = true;
  for (auto& t : busy) t.join();
  lotus::stop();
  CHECK(good == 100);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbusy") == static_cast<std::size_t>(recorded));
  CHECK(lines.size() == static_cast<std::size_t>(recorded));
}

TEST_CASE("a child created without fork handlers cannot start recording, and start says why") {
  const support::temp_directory run;
  auto o = options_for(run);
  o.on_message = nullptr;  // nullptr: messages are printed to stderr
  REQUIRE(lotus::start(o));
  record("before", 1);
  const std::string said = (run.path() / "said").string();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    alarm(250);
    dup2(open(said.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    o.log_file = run.prefix() + "_of_child";
    const bool started = lotus::start(o);
    const bool started_again = lotus::start(o);  // the message must not be printed again
    _exit(started || started_again ? 1 : 0);
  }
  CHECK(ended_well(child));
  std::ifstream in{said};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  CHECK(text ==
        "lotus: this process was created without fork handlers (by _Fork or clone), so nothing is "
        "recorded in it: use fork()\n");
  const auto other = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (other == 0) {
    alarm(250);
    record_everything(3);
    _exit(0);
  }
  CHECK(ended_well(other));
  lotus::stop();
  CHECK(read_logs(run.path()).size() == 1);
}

TEST_CASE(
    "a child created without fork handlers reports once that it records nothing, and counts") {
  const support::temp_directory run;
  auto o = options_for(run);
  // A handler of the program could wait forever for a lock in the child, so it must not be called.
  const bool has_handler = GENERATE(false, true);
  if (has_handler) {
    o.on_message = [](const char*) { raise(SIGKILL); };
  } else {
    o.on_message = nullptr;
  }
  o.cpu_time = false;
  REQUIRE(lotus::start(o));
  const std::string said = (run.path() / "said").string();
  const auto record_in_child = [&](bool known) {
    const pid_t child = fork_bare();
    if (child != 0) return child;
    alarm(250);
    dup2(open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    auto expect = [counted = lotus::dropped()](int exit_status, std::uint64_t more) mutable {
      counted += more;
      if (lotus::dropped() != counted) _exit(exit_status);
    };
    record("of_child", 3);
    expect(2, 3);
    for (int i = 0; i < 4; ++i) LOTUS_SCOPE_AGGREGATED("aggregated_of_child");
    expect(3, 4);
    LOTUS_COUNTER("counted", 1);
    expect(4, 1);
    if (known) {
      // The handler interrupts the storing of a record.
      signal(SIGUSR1, [](int) { record("of_handler", 1); });
      lotus::detail::this_ring->storing = lotus::detail::stack_pointer();
      raise(SIGUSR1);
      lotus::detail::this_ring->storing = 0;
      expect(5, 1);
    }
    _exit(0);
  };
  pid_t child = -1;
  SECTION("on a thread that has recorded before") {
    record("before", 1);
    child = record_in_child(true);
  }
  SECTION("on a thread that has never recorded") {
    std::thread{[&] { child = record_in_child(false); }}.join();
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CAPTURE(has_handler);
  CHECK(status == 0);
  std::ifstream in{said};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  CHECK(text ==
        "lotus: this process was created without fork handlers (by _Fork or clone), so nothing is "
        "recorded in it: use fork()\n");
  lotus::stop();
}

TEST_CASE("the parent keeps recording after a vfork child has run in its memory") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  record("before", 1);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  CHECK(ended_well(child));
  record("after", 1);
  lotus::stop();
  CHECK(read_logs(run.path()).size() == 2);
}
