// Tests a full disk and a lack of descriptors: the program must continue, and lost records must be
// counted.

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "messages.hpp"
#include "small_disk.hpp"
#include "support.hpp"

using support::collected_messages;
using support::count_named;
using support::read_logs;
using support::small_disk;

namespace {

lotus::options options_for(const std::string& prefix) {
  collected_messages::clear();
  lotus::options o;
  o.log_file = prefix;
  o.ring_records = 64;
  o.cpu_time = false;  // otherwise, records of CPU time would be counted too
  o.drain_interval_ms = 20;
  o.on_message = &collected_messages::add;
  return o;
}

void record(const char* name, int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE_DYNAMIC(name);
}

/// Returns how often this process has called write(2) and the like, also without success.
std::uint64_t write_calls() {
  std::ifstream io{"/proc/self/io"};
  std::uint64_t calls = 0;
  for (std::string word; io >> word;) {
    if (word == "syscw:") io >> calls;
  }
  return calls;
}

std::size_t said(const std::string& what) {
  return collected_messages::count(what);
}

}  // namespace

TEST_CASE("start reports a directory of another user and returns false") {
  if (getuid() != 0) {
    lotus_test::skip("only root can be another user");
    return;
  }
  const support::temp_directory run;
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    const bool started = lotus::start(options_for(run.prefix()));
    record("unrecorded", 100);
    _exit(started || collected_messages::all().size() != 1 || said("Permission denied") != 1 ? 1
                                                                                             : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("the program continues if the directory is mounted read-only, which is reported once") {
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    const char* const at = run.path().c_str();
    const unsigned long again = MS_BIND | MS_REMOUNT | MS_RDONLY;
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(at, at, nullptr, MS_BIND, nullptr) != 0 ||
        mount(nullptr, at, nullptr, again, nullptr) != 0) {
      _exit(77);
    }
    const lotus::options o = options_for(run.prefix());
    if (lotus::start(o)) _exit(1);
    record("unrecorded", 100);
    if (lotus::start(o)) _exit(2);
    record("unrecorded", 100);
    lotus::stop();
    _exit(said("Read-only file system; this run is not recorded") == 1 &&
                  collected_messages::all().size() == 1
              ? 0
              : 3);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) return lotus_test::skip("cannot mount here");
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(support::fs::is_empty(run.path()));
}

TEST_CASE("a full disk loses nothing, and writing resumes when there is room") {
  const support::temp_directory run;
  const small_disk disk{run.path() / "disk", 1 << 20};
  if (!disk.mounted()) return;
  const auto prefix = (run.path() / "disk" / "lotustrace_log").string();
  const auto filler = run.path() / "disk" / "filler";
  REQUIRE(lotus::start(options_for(prefix)));
  record("early", 100);
  lotus::flush();
  support::fill_disk(filler);
  record("full", 20'000);
  CHECK(said("No space left") == 1);
  std::filesystem::remove(filler);
  record("room", 100);
  lotus::stop();
  const auto lines = read_logs(run.path() / "disk");
  CHECK(count_named(lines, "Searly") == 100);
  CHECK(count_named(lines, "Sfull") + count_named(lines, "Sroom") == 20'100);
  CHECK(said("can be written again") == 1);
  CHECK(said("No space left") == 1);
}

TEST_CASE("if a disk stays full, memory is bounded and the loss is counted and reported once") {
  const support::temp_directory run;
  const small_disk disk{run.path() / "disk", 1 << 20};
  if (!disk.mounted()) return;
  auto o = options_for((run.path() / "disk" / "lotustrace_log").string());
  o.backlog_bytes = 40'000;
  const std::uint64_t before = lotus::dropped();
  REQUIRE(lotus::start(o));
  support::fill_disk(run.path() / "disk" / "filler");
  const std::uint64_t writes = write_calls();
  record("lost", 100'000);
  // Writing fails now, so it must not be tried again for each record.
  CHECK(write_calls() - writes < 10'000);
  lotus::stop();
  const std::uint64_t lost = lotus::dropped() - before;
  const auto logged = count_named(read_logs(run.path() / "disk"), "Slost");
  CAPTURE(lost, logged);
  CHECK(lost > 90'000);
  CHECK(said("records were dropped") == 1);
  // Records that are still in the ring can be recovered after disk space was freed.
  std::filesystem::remove(run.path() / "disk" / "filler");
  const int fd = open((run.path() / "disk").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  CHECK(count_named(read_logs(run.path() / "disk"), "Slost") + lost == 100'000);
}

TEST_CASE("without room for the ring file, records stay in memory, which is reported once") {
  const support::temp_directory run;
  const small_disk disk{run.path() / "disk", 16 << 10};
  if (!disk.mounted()) return;
  REQUIRE(lotus::start(options_for((run.path() / "disk" / "lotustrace_log").string())));
  record("memory", 50);
  // While the test sleeps, the library samples waits. The files of wait samples must not take the
  // last blocks of the disk, which the logs need.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  std::thread{[] { record("memory", 50); }}.join();
  lotus::stop();
  CHECK(said("cannot create a ring file") == 1);
  CHECK(count_named(read_logs(run.path() / "disk"), "Smemory") == 100);
}

TEST_CASE("at the descriptor limit, records wait until a descriptor is free") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run.prefix())));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{64, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  std::vector<int> taken;
  // Uses up all descriptors twice, because the drain thread may have had one open temporarily
  // during the first loop.
  for (int i = 0; i < 2; ++i) {
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.push_back(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::thread{[] { record("waits", 10'000); }}.join();
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(said("Too many open files") == 1);
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Swaits") == 10'000);
}

TEST_CASE("recording recreates a deleted log, and follows a renamed directory") {
  const support::temp_directory run;
  const auto first = run.path() / "first";
  const auto second = run.path() / "second";
  REQUIRE(lotus::start(options_for((first / "lotustrace_log").string())));
  record("deleted", 10);
  lotus::flush();
  for (const auto& entry : std::filesystem::directory_iterator(first)) {
    if (entry.path().filename().string()[0] != '.') std::filesystem::remove(entry.path());
  }
  record("again", 10);
  lotus::flush();
  CHECK(count_named(read_logs(first), "Sagain") == 10);
  std::filesystem::rename(first, second);
  record("moved", 10);
  std::thread{[] { record("moved", 10); }}.join();
  lotus::stop();
  const auto lines = read_logs(second);
  CHECK(count_named(lines, "Sagain") == 10);
  CHECK(count_named(lines, "Smoved") == 20);
  CHECK(!std::filesystem::exists(first));
  CHECK(support::count_files(second, ".lotus_ring_") == 0);
}

TEST_CASE("500 simultaneous threads use a bounded number of descriptors") {
  const support::temp_directory run{support::in_memory()};
  REQUIRE(lotus::start(options_for(run.prefix())));
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  std::vector<std::thread> threads;
  std::atomic<int> recorded{0};
  std::atomic<bool> leave{false};
  for (int t = 0; t < 500; ++t) {
    threads.emplace_back([&] {
      record("many", 200);
      ++recorded;
      while (!leave) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  while (recorded < 500) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(descriptors() - before <= 140);
  leave = true;
  for (auto& t : threads) t.join();
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Smany") == 100'000);
}
