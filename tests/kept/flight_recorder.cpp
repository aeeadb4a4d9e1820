// Tests that a flight recorder can run forever: its disk and memory use must stay bounded, and the
// newest records must be kept.
//
// Usage: flight_recorder [--seconds S]. Four threads together record 20,000 records per second, of
// which 2 MB are kept. The exit status is 0 on success.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../support.hpp"
#include "lotus/lotus.hpp"

namespace {

constexpr std::uint64_t kept_bytes = 2'000'000;
constexpr int threads = 4;
constexpr std::int64_t records_at_once = 50;
constexpr auto pause_between = std::chrono::milliseconds(10);

std::uint64_t bytes_in(const support::fs::path& run) {
  std::uint64_t bytes = 0;
  for (const auto& entry : support::fs::directory_iterator(run)) {
    std::error_code gone;
    if (entry.path().filename().string().rfind(".lotus_compact_", 0) != 0) continue;
    const std::uint64_t size = support::fs::file_size(entry.path(), gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

/// Returns the private memory of this process, in KiB.
std::uint64_t memory_kib() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  std::uint64_t value = 0;
  while (status >> word) {
    if (word == "RssAnon:" && status >> value) break;
  }
  return value;
}

/// Whether only the library can make the memory use grow. Sanitizers make it grow too, because they
/// keep freed memory for some time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_is_own = false;
#elif defined(__has_feature)
  #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool memory_is_own = false;
  #else
constexpr bool memory_is_own = true;
  #endif
#else
constexpr bool memory_is_own = true;
#endif

/// Returns whether the logs contain the newest records of each thread, each once and without gaps.
bool newest_are_there(const support::fs::path& run, const std::vector<std::int64_t>& ended) {
  if (std::getenv("LOTUS_TEST_UNPACK") == nullptr) return true;
  std::vector<std::vector<std::int64_t>> kept(threads);
  for (const auto& line : support::read_logs(run)) {
    const std::int64_t number = std::stoll(line.name.substr(line.name.rfind('_') + 1));
    kept[static_cast<std::size_t>(number % threads)].push_back(number / threads);
  }
  for (std::size_t t = 0; t < threads; ++t) {
    std::sort(kept[t].begin(), kept[t].end());
    if (kept[t].empty() || kept[t].back() != ended[t] - 1) return false;
    const auto count = static_cast<std::int64_t>(kept[t].size());
    if (kept[t].back() - kept[t].front() + 1 != count) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int seconds = 10;
  if (argc == 3 && std::strcmp(argv[1], "--seconds") == 0) seconds = std::atoi(argv[2]);
  const support::temp_directory run;
  lotus::options o;
  o.log_file = run.prefix();
  o.keep_bytes = kept_bytes;
  o.cpu_time = false;
  if (!lotus::start(o)) return 1;

  std::atomic<bool> stop{false};
  std::vector<std::int64_t> ended(threads);
  std::vector<std::thread> recording;
  for (int t = 0; t < threads; ++t) {
    recording.emplace_back([t, &stop, &ended] {
      std::int64_t i = 0;
      while (!stop) {
        for (std::int64_t k = 0; k < records_at_once; ++k, ++i)
          LOTUS_BATCH_CONSUMED(i * threads + t);
        std::this_thread::sleep_for(pause_between);
      }
      ended[static_cast<std::size_t>(t)] = i;
    });
  }

  std::uint64_t max_bytes = 0;
  std::uint64_t early_kib = 0;
  std::uint64_t max_kib = 0;
  for (int i = 0; i < seconds * 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    max_bytes = std::max(max_bytes, bytes_in(run.path()));
    max_kib = std::max(max_kib, memory_kib());
    if (i == 10) early_kib = max_kib;
  }
  stop = true;
  for (auto& t : recording) t.join();
  lotus::stop();

  const bool newest = newest_are_there(run.path(), ended);
  std::printf("%lld records of a thread; at most %llu bytes; memory %llu KiB, at most %llu; %s\n",
              static_cast<long long>(ended[0]), static_cast<unsigned long long>(max_bytes),
              static_cast<unsigned long long>(early_kib), static_cast<unsigned long long>(max_kib),
              newest ? "the newest are there" : "the newest are not there");
  const bool memory_stays = !memory_is_own || max_kib - early_kib < 4096;
  return newest && max_bytes <= kept_bytes && memory_stays && lotus::dropped() == 0 ? 0 : 1;
}
