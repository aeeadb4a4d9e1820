// Tests logs that cannot be written when the process exits. The lost records must be counted and
// reported, and it must be possible to recover all others.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "small_disk.hpp"
#include "support.hpp"

using support::count_named;
using support::read_logs;

namespace {

/// Runs a child process that records to `directory` and then exits. The library's messages on
/// stderr are written to the file `said`. Returns the child's wait status.
/// @param choose  void(lotus::options&): changes the options of the recording.
template <class Body, class Choose>
int status_of_recording(const support::fs::path& directory, const support::fs::path& said,
                        Body&& body, Choose&& choose) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    dup2(open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    lotus::options o;
    o.log_file = (directory / "lotustrace_log").string();
    o.ring_records = 64;
    o.cpu_time = false;  // otherwise, records of CPU time would be counted too
    // Do not sample waits: at exit, the library closes the files of wait samples, and the logs
    // could then use the disk space and descriptors of these files.
    o.wait_samples_per_s = 0;
    choose(o);
    if (!lotus::start(o)) _exit(2);
    { LOTUS_SCOPE("first"); }
    lotus::flush();
    body();
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

template <class Body>
int status_of_recording(const support::fs::path& directory, const support::fs::path& said,
                        Body&& body) {
  return status_of_recording(directory, said, body, [](lotus::options&) {});
}

std::string read_text(const support::fs::path& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void record(const char* name, int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE_DYNAMIC(name);
}

struct outcome {
  unsigned long long said_dropped = 0;
  unsigned long long said_recoverable = 0;
  unsigned long long info_written = 0;
  unsigned long long info_dropped = 0;
  unsigned long long info_lost = 0;
};

outcome outcome_of(const support::fs::path& directory, const support::fs::path& said) {
  outcome o;
  std::ifstream messages{said};
  for (std::string line; std::getline(messages, line);) {
    unsigned long long n = 0;
    if (std::sscanf(line.c_str(), "lotus: %llu records", &n) != 1) continue;
    (line.find("were dropped") != std::string::npos ? o.said_dropped : o.said_recoverable) = n;
  }
  for (const auto& entry : support::fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::ifstream info{entry.path()};
    for (std::string line; std::getline(info, line);) {
      std::sscanf(line.c_str(), "records %llu %llu", &o.info_written, &o.info_dropped);
      std::sscanf(line.c_str(), "lost %llu", &o.info_lost);
    }
  }
  return o;
}

lotus::detail::recovery recover(const support::fs::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const lotus::detail::recovery result = lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  return result;
}

}  // namespace

TEST_CASE("with a full disk at exit, each record is logged, recoverable, or counted as lost") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 1 << 20};
  if (!disk.mounted()) return;
  const int status = status_of_recording(at, run.path() / "said", [&] {
    support::fill_disk(at / "filler");
    record("full", 100'000);
    if (lotus::dropped() != 0) _exit(3);
  });
  CHECK(status == 0);
  const outcome o = outcome_of(at, run.path() / "said");
  CHECK(o.said_dropped > 90'000);
  CHECK(o.said_recoverable > 0);
  CHECK(o.info_dropped == o.said_dropped);
  CHECK(o.info_written + o.said_recoverable + o.info_dropped == 100'001);
  support::fs::remove(at / "filler");
  CHECK(recover(at).lost == 0);
  CHECK(read_logs(at).size() == o.info_written + o.said_recoverable);
}

TEST_CASE("recovery counts the records that were only in memory at a kill on a full disk") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 1 << 20};
  if (!disk.mounted()) return;
  const int threads = GENERATE(1, 3);
  const int status = status_of_recording(at, run.path() / "said", [&] {
    // A thread that starts while the disk is full cannot get a ring in the ring file; the library
    // must report this.
    pthread_barrier_t filled;
    pthread_barrier_init(&filled, nullptr, static_cast<unsigned>(threads) + 1);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&filled] {
        record("full", 1);
        pthread_barrier_wait(&filled);
        pthread_barrier_wait(&filled);
        record("full", 19'999);
      });
    }
    pthread_barrier_wait(&filled);
    lotus::flush();
    support::fill_disk(at / "filler");
    pthread_barrier_wait(&filled);
    for (auto& t : all) t.join();
    if (lotus::dropped() != 0) _exit(3);
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  support::fs::remove(at / "filler");
  const lotus::detail::recovery r = recover(at);
  CHECK(r.error == 0);
  CHECK(r.lost > 10'000);
  CHECK(read_logs(at).size() + r.lost == 20'000U * static_cast<unsigned>(threads) + 1);
  CHECK(outcome_of(at, run.path() / "said").info_lost == r.lost);
  CHECK(recover(at).lost == 0);
}

TEST_CASE("recovery counts the records of threads that started while the disk was full") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 1 << 20};
  if (!disk.mounted()) return;
  // The ring file has spare space for 64 threads that start while the disk is full. The records of
  // further threads are only in memory, which the library must report at that moment.
  const int threads = GENERATE(1, 50, 80);
  // If full rings drop records, threads get no small ring in the spare space.
  const bool drops = GENERATE(false, true);
  const bool all_counted = !drops && threads <= 64;
  const int status = status_of_recording(
      at, run.path() / "said",
      [&] {
        support::fill_disk(at / "filler");
        std::vector<std::thread> all;
        pthread_barrier_t done;
        pthread_barrier_init(&done, nullptr, static_cast<unsigned>(threads) + 1);
        for (int i = 0; i < threads; ++i) {
          all.emplace_back([&] {
            record("full", 1000);
            pthread_barrier_wait(&done);
            pthread_barrier_wait(&done);
          });
        }
        pthread_barrier_wait(&done);
        if (!drops && lotus::dropped() != 0) _exit(3);
        raise(SIGKILL);
      },
      [&](lotus::options& o) {
        if (drops) o.when_full = lotus::full_ring::drop;
      });
  CHECK(WIFSIGNALED(status));
  support::fs::remove(at / "filler");
  const lotus::detail::recovery r = recover(at);
  CHECK(r.error == 0);
  const std::size_t recovered = count_named(read_logs(at), "Sfull");
  const auto all = static_cast<std::size_t>(threads) * 1000;
  const std::string said = read_text(run.path() / "said");
  CAPTURE(threads, recovered, r.lost, said);
  CHECK((recovered > 0) == !drops);
  CHECK((r.lost > 0) == !drops);
  CHECK(outcome_of(at, run.path() / "said").info_lost == r.lost);
  const bool reported = said.find("cannot create a ring file") != std::string::npos &&
                        said.find(
                            "if the process is killed, records that are not yet in the logs "
                            "are lost") != std::string::npos;
  CHECK(reported == !all_counted);
  if (all_counted) CHECK(recovered + r.lost == all);
  if (!all_counted && !drops) CHECK(recovered + r.lost >= 30'000);
}

TEST_CASE("a thread that started on a full disk gets a larger ring when there is room again") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 8 << 20};
  if (!disk.mounted()) return;
  const bool killed = GENERATE(true, false);
  const int status = status_of_recording(
      at, run.path() / "said",
      [&] {
        support::fill_disk(at / "filler");
        std::thread{[&] {
          record("full", 1000);
          support::fs::remove(at / "filler");
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          lotus::flush();
          record("room", 200);
          lotus::flush();
          // These records fit into the ring only if it has its full size now.
          record("last", 1500);
          if (killed) raise(SIGKILL);
        }}.join();
      },
      [&](lotus::options& o) {
        o.ring_records = 4096;
        o.drain_interval_ms = 1'000'000;
      });
  CHECK(WIFSIGNALED(status) == killed);
  if (killed) {
    const lotus::detail::recovery r = recover(at);
    CHECK(r.lost == 0);
    CHECK(r.records == 1500);
  }
  const auto lines = read_logs(at);
  CHECK(count_named(lines, "Sfull") == 1000);
  CHECK(count_named(lines, "Sroom") == 200);
  CHECK(count_named(lines, "Slast") == 1500);
}

TEST_CASE("recovery loses nothing if the disk had room again before the kill") {
  const support::temp_directory run;
  const auto at = run.path() / "disk";
  const support::small_disk disk{at, 8 << 20};
  if (!disk.mounted()) return;
  const int status = status_of_recording(at, run.path() / "said", [&] {
    support::fill_disk(at / "filler");
    record("full", 20'000);
    support::fs::remove(at / "filler");
    lotus::flush();
    record("again", 30);
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(recover(at).lost == 0);
  CHECK(read_logs(at).size() == 20'031);
}

TEST_CASE("records go from memory into the ring file if logs cannot be opened at exit") {
  const support::temp_directory run;
  const int status = status_of_recording(run.path(), run.path() / "said", [] {
    rlimit few{};
    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    // Uses up all descriptors twice, because the drain thread may have had one open temporarily
    // during the first loop.
    for (int i = 0; i < 2; ++i) {
      while (dup(0) >= 0) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    std::thread{[] { record("waits", 10'000); }}.join();
  });
  CHECK(status == 0);
  const outcome o = outcome_of(run.path(), run.path() / "said");
  CHECK(o.said_dropped == 0);
  CHECK(o.said_recoverable == 10'000);
  recover(run.path());
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Swaits") == 10'000);
  CHECK(lines.size() == 10'001);
}
