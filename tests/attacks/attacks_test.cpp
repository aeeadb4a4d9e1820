// Tests attacks on the library: what a program, its user or another process may do. The program
// must end as it would without the library, and lost records and exceeded limits must be reported.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../faults/recording.hpp"
#include "../faults/small_disk.hpp"
#include "catch.hpp"
#include "loop_disk.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using support::collected_messages;
using support::count_named;
using support::loop_disk;
using support::options_for;
using support::read_logs;

namespace {

namespace fs = std::filesystem;

pid_t start_attacked(const std::string& what, const fs::path& directory, int input = -1,
                     int output = -1) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (input >= 0) dup2(input, 0);
  if (output >= 0) dup2(output, 1);
  support::exec_program(ATTACKED_PROGRAM, {ATTACKED_PROGRAM, what, directory.string()});
}

/// Waits until the process ends, and returns its status; kills it if it does not end.
int status_of(pid_t pid, int max_seconds = 100) {
  int status = -1;
  for (int i = 0; i < max_seconds * 100; ++i) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return status;
}

std::uint64_t blocks_in(const fs::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    struct stat status {};
    if (lstat(entry.path().c_str(), &status) == 0) {
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  return bytes;
}

/// Runs `body` on a thread, and returns how many bytes of its stack it used.
std::size_t stack_of(void (*body)()) {
  constexpr std::size_t bytes = std::size_t{256} << 10;
  constexpr int paint = 0xA5;
  static void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memset(memory, paint, bytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, bytes);
  pthread_t thread{};
  const auto run = [](void* of) -> void* {
    reinterpret_cast<void (*)()>(of)();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, reinterpret_cast<void*>(body)) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto* const stack = static_cast<const unsigned char*>(memory);
  std::size_t unused = 0;
  while (unused < bytes && stack[unused] == paint) ++unused;
  return bytes - unused;
}

}  // namespace

TEST_CASE("a process ends when main() and then its other threads have left") {
  const support::temp_directory run;
  const bool stops = GENERATE(false, true);
  const pid_t pid = start_attacked(stops ? "stop_and_leave" : "leave", run.path());
  const int status = status_of(pid);
  CHECK(status == 0);
  if (!stops) CHECK(count_named(read_logs(run.path()), "Safter") == 1);
}

TEST_CASE("a full disk kills no program, whatever the file system") {
  const support::temp_directory run;
  const std::string make = GENERATE("mkfs.ext4 -q -F", "mkfs.xfs -q -f", "mkfs.btrfs -q -f");
  const fs::path at = run.path() / "disk";
  const loop_disk disk{at, make, std::size_t{320} << 20};
  if (!disk.mounted()) return;
  fs::create_directory(at / "run");
  int input[2];
  int output[2];
  REQUIRE(pipe2(input, O_CLOEXEC) == 0);
  REQUIRE(pipe2(output, O_CLOEXEC) == 0);
  const pid_t pid = start_attacked("obey", at / "run", input[0], output[1]);
  close(input[0]);
  close(output[1]);
  const auto record = [&] {
    char answer[32];
    return write(input[1], "8000\n", 5) == 5 && read(output[0], answer, sizeof(answer)) > 0;
  };
  CHECK(record());
  // Where this works, the copy shares its blocks with the ring file.
  loop_disk::run("cp -r --reflink=auto " + (at / "run").string() + " " + (at / "copy").string());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  // Reserves the free space without writing to it, in ever smaller files.
  loop_disk::run("i=0; for s in 64M 16M 4M 1M 256K 64K 16K 4K; do while fallocate -l $s " +
                 (at / "filler").string() +
                 "$i; do i=$((i+1)); [ $i -gt 300 ] && break; done; done");
  loop_disk::run("dd if=/dev/zero of=" + (at / "small").string() + " bs=512");
  for (int i = 0; i < 3; ++i) {
    CHECK(record());
    loop_disk::run("sync -f " + at.string());  // the ring's pages must be made writable again
  }
  close(input[1]);
  // A full btrfs searches for space at each page that is written to, some seconds each time.
  const int status = status_of(pid, make.find("btrfs") == std::string::npos ? 100 : 15);
  close(output[0]);
  const bool waits = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (waits) return lotus_test::skip("the full file system keeps the program waiting: " + make);
  CHECK(status == 0);
}

TEST_CASE("no other user can truncate a ring file") {
  const support::temp_directory run;
  const mode_t before = umask(002);
  REQUIRE(lotus::start(options_for(run)));
  umask(before);
  bool found = false;
  for (const auto& entry : fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) != 0) continue;
    found = true;
    struct stat status {};
    CHECK(stat(entry.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 022) == 0);
  }
  CHECK(found);
  lotus::stop();
}

TEST_CASE("a limit that cannot be kept is reported once") {
  if (getuid() != 0) return lotus_test::skip("only root can change its user or freeze a folder");
  const support::temp_directory run;
  const bool other_user = GENERATE(true, false);
  const pid_t pid = fork();
  if (pid == 0) {
    auto o = options_for(run);
    o.keep_bytes = 200'000;
    o.ring_records = 64;
    o.on_message = &collected_messages::add;
    collected_messages::clear();
    if (!lotus::start(o)) _exit(2);
    { LOTUS_SCOPE("first"); }
    lotus::flush();
    if (other_user) {
      if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    } else if (!loop_disk::run("chattr +a " + run.path().string())) {
      _exit(77);
    }
    for (int i = 0; i < 100'000; ++i) LOTUS_SCOPE("more");
    lotus::flush();
    _exit(collected_messages::count("grow beyond the limit") == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  loop_disk::run("chattr -a " + run.path().string());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    return lotus_test::skip("cannot change the user or the folder");
  }
  CHECK(status == 0);
}

TEST_CASE("many short processes stay within a limit together") {
  const support::temp_directory run{support::in_memory()};
  const auto run_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      REQUIRE(status_of(start_attacked("short", run.path())) == 0);
    }
  };
  run_some(80);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  run_some(2);
  CHECK(blocks_in(run.path()) <= 400'000);
}

TEST_CASE("a scope needs 8 KiB of stack, also if the ring is full, and a snapshot no more") {
  const support::temp_directory run;
  stack_of([] {});
  const std::size_t none = stack_of([] {});
  static lotus::options o;
  o = options_for(run);
  o.keep_bytes = 1'000'000;
  o.ring_records = 1024;
  CHECK(stack_of([] { lotus::start(o); }) - none <= 9 * 1024);
  const auto used = [&](void (*body)()) { return stack_of(body) - none; };
  CHECK(used([] { LOTUS_SCOPE("one"); }) <= 8 * 1024);
  CHECK(used([] {
          for (int i = 0; i < 300'000; ++i) LOTUS_SCOPE("full");
        }) <= 8 * 1024);
  CHECK(used([] {
          for (int i = 0; i < 3000; ++i) LOTUS_SCOPE_DYNAMIC("name" + std::to_string(i));
        }) <= 8 * 1024);
  CHECK(used([] {
          for (int i = 0; i < 100; ++i) LOTUS_SCOPE_AGGREGATED("sum");
        }) <= 8 * 1024);
  CHECK(used([] {
          for (std::uint64_t i = 0; i < 100; ++i) LOTUS_BATCH_WAIT(i);
        }) <= 8 * 1024);
  CHECK(used([] { lotus::snapshot("stack"); }) <= 8 * 1024);
  lotus::stop();
}

#if defined(__x86_64__)
TEST_CASE("a program that may not read the TSC runs without being recorded") {
  const support::temp_directory run;
  const pid_t pid = start_attacked("without_tsc", run.path());
  const int status = status_of(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no PR_SET_TSC here");
  CHECK(status == 0);
}
#endif

TEST_CASE("names that are new while the disk is full are recovered") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 2 << 20};
  if (!disk.mounted()) return;
  const pid_t pid = fork();
  if (pid == 0) {
    auto o = options_for(run);
    o.log_file = (at / "lotustrace_log").string();
    if (!lotus::start(o)) _exit(2);
    { LOTUS_SCOPE("first"); }
    support::fill_disk(at / "filler");
    for (int i = 0; i < 3000; ++i) LOTUS_SCOPE_DYNAMIC("new name " + std::to_string(i));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  fs::remove(at / "filler");
  const int fd = open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  std::size_t named = 0;
  for (const auto& line : read_logs(at)) named += line.name.rfind("Snew name", 0) == 0 ? 1 : 0;
  CHECK(named == 3000);
}

TEST_CASE("the library's threads do not inherit a real-time priority") {
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    sched_param priority{};
    priority.sched_priority = 1;
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) _exit(77);
    lotus::start(options_for(run));
    { LOTUS_SCOPE("urgent"); }
    int found = 0;
    for (int i = 0; i < 100 && found == 0; ++i) {
      usleep(10'000);
      for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
        const pid_t tid = std::atoi(entry.path().filename().c_str());
        if (tid == getpid()) continue;
        ++found;
        if (sched_getscheduler(tid) != SCHED_OTHER) _exit(1);
      }
    }
    lotus::stop();
    _exit(found == 0 ? 3 : 0);
  }
  const int status = status_of(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return lotus_test::skip("no SCHED_FIFO here");
  CHECK(status == 0);
}
