// Tests that no record is lost or stored twice under random load: random records on random threads
// for random loaders, random forks and random kills. Counters in a shared page, which outlives the
// processes, count every record that has ended; each must be in the logs exactly once.
//
// Usage: torture [--rounds N] [--seconds S] [--seed SEED]. The exit status is 0 if all rounds
// succeeded.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support.hpp"
#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "shared_page.hpp"

namespace {

using random_source = std::mt19937_64;

constexpr std::size_t next_slot = 0;  ///< index of the counter that gives each thread its slot
constexpr std::size_t slots = 2048;   ///< number of slots; each thread of each process has one
// Each slot has further values in the shared page. To get the index of such a value, add one of
// these numbers to the slot's number:
constexpr std::size_t clean = slots;  ///< a flag that is 1 if the thread ended without being killed
constexpr std::size_t side_slots = 2 * slots;  ///< the number of the thread's lines in side logs

constexpr const char* loaders[] = {"", "", "val"};
const std::set<std::string> side_kinds{"stage", "number", "piece", "counter"};

std::uint64_t below(random_source& random, std::uint64_t n) {
  return random() % n;
}

/// Stores a record of a random kind. Returns how many lines the record adds to the log and to the
/// side log.
std::pair<std::uint64_t, std::uint64_t> record_any(const std::string& name, random_source& random) {
  const std::uint64_t number = below(random, 100);
  switch (below(random, 6)) {
    case 0: {
      const lotus::stage small{name, number};
      return {1, 1};
    }
    case 1: {
      const lotus::stage large{name, (std::uint64_t{1} << 40) + number};
      return {1, 2};
    }
    case 2: {
      const lotus::async_scope segment{name};
      return {1, 1};
    }
    case 3:
      lotus::counter(name, static_cast<std::int64_t>(number));
      return {0, 1};
    default: {
      const lotus::scope plain{name};
      return {1, 0};
    }
  }
}

/// The body of each thread: records bursts of scopes, some of them nested, with pauses between.
void live(support::shared_page& page, random_source random) {
  const std::size_t slot = 1 + page[next_slot].fetch_add(1);
  if (slot >= slots) return;
  const std::string name = "slot " + std::to_string(slot);
  const auto count = [&](const std::pair<std::uint64_t, std::uint64_t>& recorded) {
    page[slot + side_slots].fetch_add(recorded.second, std::memory_order_relaxed);
    page[slot].fetch_add(recorded.first, std::memory_order_relaxed);
  };
  for (std::uint64_t burst = below(random, 30); burst > 0; --burst) {
    const lotus::loader_scope loader{loaders[below(random, std::size(loaders))]};
    for (std::uint64_t i = below(random, 400); i > 0; --i) {
      {
        const lotus::scope outer{name};
        if (i % 3 == 0) count(record_any(name, random));
      }
      count({1, 0});
    }
    if (below(random, 4) == 0) usleep(static_cast<useconds_t>(below(random, 2000)));
  }
  page[slot + clean].store(1);
}

void become_process(support::shared_page& page, random_source& random, int depth);

/// Forks a process that runs threads and forks further processes. Kills it at a random moment, or
/// waits for its end.
void fork_process(support::shared_page& page, random_source& random, int depth) {
  random_source of_child{random()};
  const bool killed = below(random, 2) == 0;
  const auto after_us = static_cast<useconds_t>(below(random, 20'000));
  const pid_t pid = fork();
  if (pid < 0) return;
  if (pid == 0) become_process(page, of_child, depth);
  if (killed) {
    usleep(after_us);
    kill(pid, SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

[[noreturn]] void end_process(random_source& random) {
  switch (below(random, 4)) {
    case 0:
      _exit(0);
    case 1:
      raise(SIGKILL);
      [[fallthrough]];
    case 2:
      quick_exit(0);
    default:
      exit(0);
  }
}

void become_process(support::shared_page& page, random_source& random, int depth) {
  alarm(250);  // kills the process if it hangs; its missing `clean` flags then make the round fail
  std::vector<std::thread> threads;
  for (std::uint64_t t = below(random, 4); t > 0; --t) {
    threads.emplace_back([&page, seed = random(), depth] {
      random_source own{seed};
      live(page, random_source{own()});
      if (depth > 0 && below(own, 3) == 0) fork_process(page, own, depth - 1);
    });
  }
  live(page, random_source{random()});
  for (std::uint64_t f = below(random, 3); depth > 0 && f > 0; --f) {
    fork_process(page, random, depth - 1);
  }
  for (auto& t : threads) t.join();
  end_process(random);
}

/// Runs one to three processes, one after the other, in one run directory. Returns whether the
/// counters and the logs agree.
bool run_round(std::uint64_t seed, std::uint64_t& lines) {
  const support::temp_directory run{support::in_memory()};
  support::shared_page page{(run.path() / "counters").string()};
  random_source random{seed};
  const int processes = 1 + static_cast<int>(below(random, 3));
  for (int i = 0; i < processes; ++i) {
    random_source of_process{random()};
    const bool killed = below(random, 2) == 0;
    const auto after_us = static_cast<useconds_t>(below(random, 30'000));
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      lotus::options o;
      o.log_file = run.prefix();
      o.ring_records = 64U << below(of_process, 5);
      o.drain_interval_ms = 1 + static_cast<std::uint32_t>(below(of_process, 20));
      o.on_message = [](const char*) {};
      if (!lotus::start(o)) _exit(3);
      become_process(page, of_process, 2);
    }
    setpgid(pid, pid);
    if (killed) {
      usleep(after_us);
      kill(-pid, SIGKILL);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    // If one of the processes was killed, the processes that it had forked continue. All of them
    // must end before the test checks the logs.
    while (kill(-pid, 0) == 0) {
      if (waitpid(-pid, &status, WNOHANG) <= 0) usleep(500);
    }
  }
  const int directory = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::recover_directory(directory, nullptr);
  close(directory);

  std::map<std::string, std::uint64_t> logged;
  std::map<std::string, std::uint64_t> in_side_log;
  for (const auto& folder : {run.path(), run.path() / "val"}) {
    if (!std::filesystem::exists(folder)) continue;
    // Unpacking compact logs takes a process, so it is done once for all lines.
    const support::temp_directory unpacked{support::in_memory()};
    const auto text = support::with_text_logs(folder, unpacked);
    support::for_each_line(support::log_files(text, false),
                           [&](const auto& line, const auto& owner) {
                             ++logged[support::parse_line(line, owner).name];
                           });
    support::for_each_line(
        support::log_files(text, true), [&](const auto& line, const auto& owner) {
          const support::side_log_line one = support::parse_side_line(line, owner);
          if (side_kinds.count(one.kind) > 0) ++in_side_log[one.name];
        });
  }
  bool agree = support::count_files(run.path(), ".lotus_ring_") == 0;
  if (!agree)
    std::printf("round %llu: a ring file is left\n", static_cast<unsigned long long>(seed));
  for (std::size_t slot = 1; slot <= page[next_slot] && slot < slots; ++slot) {
    const std::string name = "Sslot " + std::to_string(slot);
    const bool killed = page[slot + clean] == 0;
    lines += logged[name] + in_side_log[name];
    const auto compare = [&](std::uint64_t ended, std::uint64_t found, std::uint64_t uncounted) {
      if (found >= ended && found <= ended + (killed ? uncounted : 0)) return;
      std::printf("round %llu: slot %zu ended %llu lines, %llu are logged\n",
                  static_cast<unsigned long long>(seed), slot,
                  static_cast<unsigned long long>(ended), static_cast<unsigned long long>(found));
      agree = false;
    };
    compare(page[slot], logged[name], 1);
    compare(page[slot + side_slots], in_side_log[name], 2);
  }
  return agree;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t rounds = 200;
  std::uint64_t seconds = 0;
  std::uint64_t seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = value;
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = value;
    if (std::strcmp(argv[i], "--seed") == 0) seed = value;
  }
  // Makes orphaned processes our children, so that we can wait for them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Output must not be buffered, because a forked child would print the buffered text again.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t lines = 0;
  for (; seconds > 0 ? std::chrono::steady_clock::now() < end : done < rounds; ++done) {
    if (!run_round(seed + done, lines)) ++failed;
  }
  std::printf("%llu rounds, %llu lines, %llu rounds failed\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(lines),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
