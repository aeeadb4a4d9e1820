// Kills processes that call aggregated operations at random moments. Every call that ended must be
// counted once, except that the call that was just ending may be missing.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "aggregates.hpp"
#include "catch.hpp"
#include "faults/recording.hpp"
#include "faults/shared_page.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace {

constexpr std::size_t threads = 3;

/// Makes calls until the process is killed. Increments a counter in the shared page after each
/// call.
void call_flat_out(support::shared_page& ended) {
  std::vector<std::thread> all;
  for (std::size_t slot = 0; slot < threads; ++slot) {
    all.emplace_back([&ended, slot] {
      const std::string other = "other" + std::to_string(slot);
      const std::string name = "t" + std::to_string(slot);
      std::uint64_t n = 0;
      while (true) {
        {
          LOTUS_SCOPE("Recorded");
          for (int i = 0; i < 50; ++i) {
            { LOTUS_SCOPE_AGGREGATED(name); }
            ended[slot].store(++n);
            LOTUS_SCOPE_AGGREGATED(other);
          }
        }
      }
    });
  }
  for (std::thread& t : all) t.join();
}

int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a kill at any moment loses no call that ended, and recovery counts each once") {
  std::mt19937_64 random{support::seed()};
  for (int round = 0; round < 40; ++round) {
    const support::temp_directory run;
    const std::string page = (run.path() / "counters").string();
    const pid_t victim = fork();
    if (victim == 0) {
      support::shared_page ended{page};
      if (!lotus::start(support::options_for(run))) _exit(1);
      call_flat_out(ended);
    }
    usleep(static_cast<useconds_t>(3'000 + random() % 40'000));
    kill(victim, SIGKILL);
    wait_for(victim);
    for (int again = 0; again < 2; ++again) {
      support::recover_all(run);
      CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
      support::shared_page ended{page};
      for (std::size_t slot = 0; slot < threads; ++slot) {
        const auto sum = support::aggregate_of(run.path(), "St" + std::to_string(slot));
        CAPTURE(slot, sum.count, ended[slot].load());
        CHECK(sum.count >= ended[slot]);
        CHECK(sum.count <= ended[slot] + 1);
      }
    }
  }
}

TEST_CASE("a kill during stop loses no call, and recovery counts each once") {
  constexpr std::uint64_t calls = 3000;
  std::mt19937_64 random{support::seed()};
  for (int round = 0; round < 60; ++round) {
    const support::temp_directory run;
    support::shared_page ready{(run.path() / "counters").string()};
    const pid_t victim = fork();
    if (victim == 0) {
      if (!lotus::start(support::options_for(run))) _exit(1);
      for (std::uint64_t i = 0; i < calls; ++i) LOTUS_SCOPE_AGGREGATED("Token");
      {
        LOTUS_LOADER("val");
        LOTUS_SCOPE_AGGREGATED("Token");
      }
      ready[0].store(1);
      lotus::stop();
      ready[0].store(2);
      pause();
    }
    while (ready[0].load() == 0) usleep(10);
    usleep(static_cast<useconds_t>(random() % 400));
    kill(victim, SIGKILL);
    wait_for(victim);
    support::recover_all(run);
    CHECK(support::aggregate_of(run.path(), "SToken").count == calls);
    CHECK(support::aggregate_of(run.path() / "val", "SToken").count == 1);
    CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
  }
}

TEST_CASE("a recovery that is killed repeatedly still counts each call once") {
  std::mt19937_64 random{support::seed()};
  const support::temp_directory run;
  const pid_t victim = fork();
  if (victim == 0) {
    if (!lotus::start(support::options_for(run))) _exit(1);
    for (int i = 0; i < 3000; ++i) LOTUS_SCOPE_AGGREGATED("Token");
    kill(getpid(), SIGKILL);
  }
  wait_for(victim);
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (support::count_files(run.path(), ".lotus_ring_") == 0) break;
    const pid_t recoverer = fork();
    if (recoverer == 0) {
      support::recover_all(run);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(random() % 300));
    kill(recoverer, SIGKILL);
    wait_for(recoverer);
  }
  support::recover_all(run);
  CHECK(support::aggregate_of(run.path(), "SToken").count == 3000);
}

TEST_CASE("calls are counted in a process that exits without stopping") {
  const support::temp_directory run;
  const int status = support::status_of_child([&] {
    lotus::start(support::options_for(run));
    static struct late {
      ~late() { LOTUS_SCOPE_AGGREGATED("Token"); }
    } of_static;
    for (int i = 0; i < 3000; ++i) LOTUS_SCOPE_AGGREGATED("Token");
  });
  CHECK(status == 0);
  CHECK(support::aggregate_of(run.path(), "SToken").count == 3001);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}
