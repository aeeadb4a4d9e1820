// Kills recording processes at random moments. Each scope that ended must be in a log exactly once.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "messages.hpp"
#include "shared_page.hpp"
#include "support.hpp"

using support::collected_messages;
using support::count_files;
using support::count_named;
using support::read_logs;

namespace {

pid_t start_victim(const char* how, const support::temp_directory& run) {
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string counters = (run.path() / "counters").string();
    support::exec_program(VICTIM_PROGRAM, {"victim", how, run.prefix(), counters});
  }
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

lotus::detail::recovery recover(const support::temp_directory& run) {
  const int fd = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto result = lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  return result;
}

/// Checks that every counted scope is logged once. A thread may have ended one more scope that it
/// had not counted yet when it was killed.
void check_counts(const support::temp_directory& run) {
  support::shared_page ended{(run.path() / "counters").string()};
  std::array<std::uint64_t, 16> logs{};
  for (const auto& line : read_logs(run.path())) {
    const auto slot =
        support::number_of<std::size_t>(std::string_view{line.name}.substr(2), line.name);
    ++logs.at(slot);
  }
  for (std::size_t slot = 0; slot < logs.size(); ++slot) {
    const std::uint64_t logged = logs[slot];
    CAPTURE(slot, logged, ended[slot].load());
    CHECK(logged >= ended[slot]);
    CHECK(logged <= ended[slot] + 1);
  }
}

}  // namespace

TEST_CASE("all ended scopes are in the log after recovery, however the process ended") {
  const char* how = GENERATE("sigkill", "sigsegv", "abort", "_exit", "quick_exit", "terminate",
                             "sigterm", "exit", "exec");
  const support::temp_directory run;
  wait_for(start_victim(how, run));
  CAPTURE(how);
  recover(run);
  const auto lines = read_logs(run.path());
  for (const char* name : {"St0", "St1", "St2"}) CHECK(count_named(lines, name) == 1000);
  CHECK(lines.size() == 3000);
  CHECK(count_files(run.path(), ".lotus_ring_") == 0);
  // The second recovery must find nothing to do.
  CHECK(recover(run).records == 0);
  CHECK(read_logs(run.path()).size() == 3000);
}

TEST_CASE("a process killed during drains is recovered: each scope once, and no line torn") {
  std::mt19937_64 random{support::seed()};
  for (int round = 0; round < support::rounds(40); ++round) {
    const support::temp_directory run;
    const pid_t victim = start_victim("flat-out", run);
    usleep(static_cast<useconds_t>(3'000 + random() % 40'000));
    kill(victim, SIGKILL);
    wait_for(victim);
    recover(run);
    check_counts(run);
    CHECK(count_files(run.path(), ".lotus_ring_") == 0);
  }
}

TEST_CASE("a recovery that is killed repeatedly still writes each record exactly once") {
  std::mt19937_64 random{support::seed()};
  for (int round = 0; round < support::rounds(10); ++round) {
    const support::temp_directory run;
    const pid_t victim = start_victim("flat-out", run);
    usleep(60'000);
    kill(victim, SIGKILL);
    wait_for(victim);
    for (int attempt = 0; attempt < 10 && count_files(run.path(), ".lotus_ring_") > 0; ++attempt) {
      const pid_t recoverer = fork();
      if (recoverer == 0) {
        recover(run);
        _exit(0);
      }
      usleep(static_cast<useconds_t>(random() % 800));
      kill(recoverer, SIGKILL);
      wait_for(recoverer);
    }
    recover(run);
    check_counts(run);
  }
}

TEST_CASE("recovery does not touch the ring of a running process") {
  const support::temp_directory run;
  const pid_t victim = start_victim("flat-out", run);
  while (count_files(run.path(), ".lotus_ring_") == 0) usleep(1000);
  usleep(10'000);
  const auto result = recover(run);
  CHECK(result.running == 1);
  CHECK(result.records == 0);
  kill(victim, SIGKILL);
  wait_for(victim);
  recover(run);
  check_counts(run);
}

TEST_CASE("start recovers the records of a dead process before it creates its own logs") {
  const support::temp_directory run;
  wait_for(start_victim("sigkill", run));
  REQUIRE(count_files(run.path(), ".lotus_ring_") == 1);
  lotus::options chosen;
  chosen.log_file = run.prefix();
  collected_messages::clear();
  chosen.on_message = &collected_messages::add;
  REQUIRE(lotus::start(chosen));
  lotus::stop();
  CHECK(collected_messages::count("were recovered") == 1);
  CHECK(read_logs(run.path()).size() == 3000);
}

TEST_CASE("recovery keeps a damaged ring file and writes no wrong lines") {
  const support::temp_directory run;
  wait_for(start_victim("sigkill", run));
  std::string ring;
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) == 0) ring = entry.path();
  }
  const auto original = [&] {
    std::ifstream in{ring};
    return std::string{std::istreambuf_iterator<char>{in}, {}};
  }();
  std::mt19937_64 random{support::seed()};
  for (int round = 0; round < support::rounds(300); ++round) {
    std::string broken = original;
    for (std::uint64_t i = 0; i <= random() % 20; ++i) {
      // Headers are damaged more often than records, because the reader depends on more of their
      // fields.
      const std::size_t range = random() % 2 == 0 ? std::size_t{400} : broken.size();
      const std::size_t block = random() % 3 * 36864;
      broken[(block + random() % range) % broken.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) broken.resize(random() % broken.size());
    std::ofstream{ring, std::ios::binary} << broken;
    recover(run);  // must neither crash nor hang; the address sanitizer detects invalid accesses
    for (const auto& entry : support::fs::directory_iterator(run.path())) {
      if (entry.path() != ring) support::fs::remove_all(entry.path());
    }
  }
}
