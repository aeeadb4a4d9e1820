// Tests containers that record to the same directory. Each container has a process with the pid 1,
// so without precautions their logs would have the same names.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "shared_page.hpp"
#include "support.hpp"

namespace {

constexpr int exit_without_namespaces = 77;
/// Number of logs in each container: of process 1, of its second thread, and of its child process.
constexpr std::size_t logs_of_container = 3;

/// Records scopes and counts each one after it ended, then waits to be killed.
void record_until_killed(support::shared_page& ended, std::size_t slot) {
  const std::string name = "c" + std::to_string(slot);
  for (int i = 0; i < 40'000; ++i) {
    { const lotus::scope work{name}; }
    ended[slot].fetch_add(1, std::memory_order_relaxed);
    if (i % 2'000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  for (;;) pause();
}

/// Runs as process 1 of a container.
[[noreturn]] void contained(const support::temp_directory& run, support::shared_page& ended,
                            std::size_t slot) {
  lotus::options o = support::options_for(run);
  o.ring_records = 64;
  o.drain_interval_ms = 1;
  lotus::start(o);
  std::thread other{[&] { record_until_killed(ended, slot + 1); }};
  if (fork() == 0) record_until_killed(ended, slot + 2);
  record_until_killed(ended, slot);
  std::abort();
}

/// Starts a container. Returns the pid of a process outside the container, which kills process 1
/// when it reads a byte from the pipe. The kernel then kills all processes of the container.
pid_t start_container(const support::temp_directory& run, support::shared_page& ended,
                      std::size_t slot, const std::vector<int>& pipe) {
  const pid_t outer = fork();
  if (outer != 0) return outer;
  if (unshare(CLONE_NEWPID) != 0) _exit(exit_without_namespaces);
  const pid_t first = fork();
  if (first < 0) _exit(exit_without_namespaces);
  if (first == 0) contained(run, ended, slot);
  char go = 0;
  while (read(pipe[0], &go, 1) < 0 && errno == EINTR) {
  }
  kill(first, SIGKILL);  // the kernel then kills all processes of the namespace
  waitpid(first, nullptr, 0);
  _exit(0);
}

int exit_status(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

unsigned rounds() {
  const char* given = std::getenv("LOTUS_TEST_ROUNDS");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 8;
}

}  // namespace

TEST_CASE("records of two killed containers with one directory are recovered exactly once") {
  const support::temp_directory run{support::in_memory()};
  support::shared_page ended{(run.path() / "counters").string()};
  std::mt19937_64 random{std::random_device{}()};
  constexpr std::size_t containers = 2;
  std::size_t slot = 0;
  for (unsigned round = 0; round < rounds(); ++round) {
    std::vector<int> pipe(2);
    REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
    std::vector<pid_t> waiting;
    for (std::size_t i = 0; i < containers; ++i, slot += logs_of_container) {
      waiting.push_back(start_container(run, ended, slot, pipe));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(5'000 + random() % 60'000));
    // Recovers the rings of the previous round while the processes of this round are running.
    if (round % 4 == 3) support::recover_all(run);
    // Kills the containers one after the other, so that one still records when the other one is
    // dead.
    for (std::size_t i = 0; i < containers; ++i) {
      REQUIRE(write(pipe[1], "g", 1) == 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (const pid_t pid : waiting) {
      const int status = exit_status(pid);
      if (status == exit_without_namespaces) {
        WARN("no process namespace can be made here: skipped");
        std::exit(exit_without_namespaces);
      }
      CHECK(status == 0);
    }
    close(pipe[0]);
    close(pipe[1]);
  }
  support::recover_all(run);

  std::map<std::string, std::uint64_t> logged;
  for (const support::log_line& line : support::read_logs(run.path())) ++logged[line.name];
  for (std::size_t s = 0; s < slot; ++s) {
    const std::uint64_t n = logged["Sc" + std::to_string(s)];
    CAPTURE(s, n, ended[s].load());
    CHECK(n >= ended[s]);
    CHECK(n <= ended[s] + 1);
  }
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

TEST_CASE("a log gets another number if a process of another namespace has a log of that name") {
  const support::temp_directory run;
  const std::string own = std::to_string(lotus::detail::thread_id());
  const support::fs::path log = run.prefix() + "_worker_pid_" + own;
  const std::string theirs = "Stheirs,1,1\n";
  std::ofstream{log} << theirs;
  std::ofstream{run.path() / ".lotus_info_1_1"} << "namespace elsewhere 1\nthread " << own
                                                << " S\n";

  lotus::start(support::options_for(run));
  { const lotus::scope work{"ours"}; }
  lotus::stop();

  CHECK(support::fs::file_size(log) == theirs.size());
  std::uint32_t number = 0;
  for (const support::log_line& line : support::read_logs(run.path())) {
    if (line.name == "Sours") number = line.tid;
  }
  CHECK(number > lotus::detail::largest_thread_id);
  std::string reported;
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::ifstream in{entry.path()};
    reported.append(std::istreambuf_iterator<char>{in}, {});
  }
  CHECK(reported.find("\nlog " + std::to_string(number) + " " + own + "\n") != std::string::npos);

  // A process continues the log of a dead process only if both had the same PID namespace. If no
  // information file describes the dead process, the library assumes that they had.
  support::fs::remove(run.path() / ".lotus_info_1_1");
  lotus::start(support::options_for(run));
  { const lotus::scope work{"ours"}; }
  lotus::stop();
  CHECK(support::fs::file_size(log) > theirs.size());
}
