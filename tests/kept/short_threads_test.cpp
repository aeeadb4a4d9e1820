// Tests programs with very many short threads: there must be few logs within the size limits, and
// spans of threads that share a log must not overlap.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace {

namespace fs = std::filesystem;

struct on_disk {
  std::uint64_t bytes = 0;
  std::size_t files = 0;
};

/// Returns the number and size of the logs. Ignores logs that the library creates or deletes while
/// this function runs.
on_disk logs_in(const fs::path& run) {
  on_disk sum;
  for (const auto& entry : fs::directory_iterator(run)) {
    struct stat status {};
    if (entry.path().filename().string().find("_pid_") == std::string::npos) continue;
    if (stat(entry.path().c_str(), &status) != 0) continue;
    sum.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    ++sum.files;
  }
  return sum;
}

lotus::options options_for(const support::temp_directory& run) {
  lotus::options o;
  o.log_file = run.prefix();
  o.ring_records = 256;
  o.cpu_time = false;
  o.on_message = [](const char*) {};
  return o;
}

/// Runs `threads` threads, four at a time. Each one records `spans` spans: one that lasts as long
/// as the thread, and the others inside it.
void run_threads(int threads, int spans) {
  for (int begun = 0; begun < threads; begun += 4) {
    std::vector<std::thread> some;
    for (int t = 0; t < 4; ++t) {
      some.emplace_back([spans] {
        LOTUS_SCOPE("Outer");
        for (int i = 1; i < spans; ++i) LOTUS_SCOPE("Inner");
      });
    }
    for (auto& t : some) t.join();
  }
}

/// Runs `threads` short threads, of which `at_once` run at the same time, and returns the largest
/// number and size of the logs while they ran.
on_disk most_on_disk(const fs::path& run, int threads, int at_once) {
  std::atomic<int> begun{0};
  std::atomic<int> working{at_once};
  std::vector<std::thread> starters;
  for (int s = 0; s < at_once; ++s) {
    starters.emplace_back([&] {
      for (int i = begun++; i < threads; i = begun++) {
        std::thread{[i] {
          {
            LOTUS_BATCH_PREPROCESSED(i);
            for (int k = 0; k < 5; ++k) LOTUS_SCOPE("Inner");
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
          LOTUS_BATCH_CONSUMED(i);
        }}.join();
      }
      --working;
    });
  }
  on_disk most;
  while (working > 0) {
    const on_disk now = logs_in(run);
    most.bytes = std::max(most.bytes, now.bytes);
    most.files = std::max(most.files, now.files);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (auto& s : starters) s.join();
  return most;
}

}  // namespace

TEST_CASE("while short threads run, logs stay within a size limit, and files within their number") {
  const bool text = GENERATE(false, true);
  const int at_once = GENERATE(24, 4);
#ifdef LOTUS_TEST_BRIEFLY
  if (at_once == 4 && text) return;  // only takes longer
#endif
  const support::temp_directory run;
  lotus::options o = options_for(run);
  const std::uint64_t limit = text ? 2'000'000 : 1'000'000;
  if (text) o.format = lotus::log_format::text;
  o.keep_bytes = limit;
  o.cpu_time = text;
  REQUIRE(lotus::start(o));
  const int threads = text ? 10'000 : 8'000;
  const on_disk most = most_on_disk(run.path(), threads, at_once);
  lotus::stop();
  CAPTURE(text, at_once, most.bytes, most.files);
  CHECK(most.bytes <= limit + limit / 8);
  CHECK(most.bytes > limit / 2);  // otherwise this test would not reach the limit
  // As text, a thread has up to three logs. Up to as many threads again may have ended so short a
  // time ago that no other thread continues their logs yet.
  const std::size_t logs = text ? 3 : 1;
  const std::size_t parts = limit / 8192;
  CHECK(most.files <= parts + logs * (2 * static_cast<std::size_t>(at_once) + 40));
}

TEST_CASE("many short threads leave few files and stay within a size limit") {
  const support::temp_directory run;
  lotus::options o = options_for(run);
  constexpr std::uint64_t limit = 1'000'000;
  o.keep_bytes = limit;
  REQUIRE(lotus::start(o));
  on_disk most;
  constexpr int times = support::rounds(2) == 2 ? 40 : 20;
  for (int i = 0; i < times; ++i) {
    run_threads(200, 50);
    // The library applies the size limit once per second. From time to time, the test sleeps until
    // the limit has been applied.
    lotus::flush();
    if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    const on_disk now = logs_in(run.path());
    most.files = std::max(most.files, now.files);
    if (i % 10 == 9) most.bytes = std::max(most.bytes, now.bytes);
  }
  CAPTURE(most.bytes, most.files);
  CHECK(most.bytes <= limit + limit / 8);
  CHECK(most.files < 400);
  lotus::stop();
  // Like the logs, the information file must not grow with the number of threads.
  std::uint64_t info_bytes = 0;
  for (const auto& entry : fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) == 0) {
      info_bytes += fs::file_size(entry.path());
    }
  }
  CHECK(info_bytes < 50'000);
}

TEST_CASE("without a limit, short threads share logs, and their spans do not overlap there") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  // This thread begins before all other threads, but its record is stored after those of the
  // others.
  std::atomic<bool> last{false};
  std::thread late{[&last] {
    LOTUS_SCOPE("Late");
    while (!last) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }};
  run_threads(2000, 5);
  last = true;
  late.join();
  lotus::stop();
  CHECK(logs_in(run.path()).files < 500);
  const auto lines = support::read_logs(run.path());
  CHECK(support::count_named(lines, "SOuter") == 2000);
  CHECK(support::count_named(lines, "SInner") == 8000);
  CHECK(support::count_named(lines, "SLate") == 1);
  std::map<std::uint32_t, std::vector<support::log_line>> by_log;
  for (const auto& line : lines) by_log[line.tid].push_back(line);
  bool apart = true;
  for (auto& [log, of] : by_log) {
    std::vector<support::log_line> outer;
    for (const auto& line : of) {
      if (line.name != "SInner") outer.push_back(line);
    }
    std::sort(outer.begin(), outer.end(),
              [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    for (std::size_t i = 1; i < outer.size(); ++i) {
      apart = apart && outer[i - 1].end_ns() <= outer[i].start_ns;
    }
  }
  CHECK(apart);
}
