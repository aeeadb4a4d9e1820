// Measures what a scope costs as a user sees it: also the first scope after the thread has waited,
// in short and long bursts, and beside other threads. bench/scope_bench.cpp instead measures the
// least that a scope takes in a thread that never waits.
//
// All columns are measured in turn in one process, so that they share the noise of the machine:
// the floor (two clock readings and one 24-byte store), the two system calls from which the time
// off the CPU is known (only after waits), lotus without and with that time, and Tracy's client if
// the program was built with -DLOTUS_TRACY_DIR=.
//
// Usage: user_cost [SAMPLES [THREADS...]] (default: 200 samples; 1, 2 and 8 threads)
#include <fcntl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lotus/base/ticks.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/record.hpp"

#ifdef TRACY_ENABLE
  #include <tracy/Tracy.hpp>
#endif

namespace {

using lotus::detail::hardware_ticks;

void barrier() {
  asm volatile("" ::: "memory");
}

enum class column : std::uint8_t { floor, clock, file, bare, full, tracy, count };
constexpr auto columns = static_cast<std::size_t>(column::count);
constexpr std::array<const char*, columns> titles{
    "floor", "CPU clock", "schedstat", "cpu_time = false", "defaults", "Tracy"};

/// What the thread does before each burst of scopes.
enum class before : std::uint8_t { sleep, wakeup, sweep, work };

struct row {
  const char* title;
  before first;
  std::uint32_t burst;
};
constexpr row rows[] = {{"1 after 2 ms of sleep", before::sleep, 1},
                        {"1 after a condition variable", before::wakeup, 1},
                        {"1 after sweeping the caches", before::sweep, 1},
                        {"burst of 10 after 2 ms of sleep", before::sleep, 10},
                        {"burst of 10 after a condition variable", before::wakeup, 10},
                        {"burst of 1", before::work, 1},
                        {"burst of 10", before::work, 10},
                        {"burst of 100", before::work, 100},
                        {"burst of 1,000", before::work, 1'000},
                        {"burst of 4,000", before::work, 4'000}};

void floor_burst(std::uint32_t scopes) {
  constexpr std::size_t records = 8192;
  static thread_local std::vector<lotus::detail::record> ring(records);
  static thread_local std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < scopes; ++i) {
    const std::uint64_t begin = hardware_ticks();
    barrier();
    const std::uint64_t end = hardware_ticks();
    ring[at++ % records] = {begin, end, {}};
    barrier();
  }
}

void lotus_burst(std::uint32_t scopes) {
  for (std::uint32_t i = 0; i < scopes; ++i) {
    LOTUS_SCOPE("bench");
    barrier();
  }
}

void clock_burst(std::uint32_t) {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
}

void file_burst(std::uint32_t) {
  static thread_local const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[96];
  if (pread(file, text, sizeof(text), 0) < 0) std::perror("schedstat");
}

void tracy_burst([[maybe_unused]] std::uint32_t scopes) {
#ifdef TRACY_ENABLE
  for (std::uint32_t i = 0; i < scopes; ++i) {
    ZoneScopedN("bench");
    barrier();
  }
#endif
}

/// Wakes a waiting thread through a condition variable, 100 us after it has begun to wait.
class waker {
 public:
  waker() : thread_{[this] { serve(); }} {}
  ~waker() {
    tell(state::end);
    thread_.join();
  }
  waker(const waker&) = delete;
  waker& operator=(const waker&) = delete;

  void wait() {
    std::unique_lock<std::mutex> lock{mutex_};
    state_ = state::asked;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == state::answered; });
  }

 private:
  enum class state : std::uint8_t { idle, asked, answered, end };

  void tell(state what) {
    const std::lock_guard<std::mutex> lock{mutex_};
    state_ = what;
    changed_.notify_all();
  }
  void serve() {
    std::unique_lock<std::mutex> lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return state_ == state::asked || state_ == state::end; });
      if (state_ == state::end) return;
      lock.unlock();
      const timespec time{0, 100'000};
      nanosleep(&time, nullptr);
      lock.lock();
      if (state_ == state::end) return;
      state_ = state::answered;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  state state_ = state::idle;
  std::thread thread_;
};

/// Does what a loader does between its operations.
class idler {
 public:
  void pass(before what) {
    const timespec time{0, 2'000'000};
    switch (what) {
      case before::sleep:
        nanosleep(&time, nullptr);
        break;
      case before::wakeup:
        waker_.wait();
        break;
      case before::sweep:
        for (std::size_t i = 0; i < swept_.size(); i += 64) ++swept_[i];
        break;
      case before::work:
        for (std::size_t i = 0; i < std::size_t{64} << 10; i += 64) ++swept_[i];
        break;
    }
  }

 private:
  std::vector<unsigned char> swept_ = std::vector<unsigned char>(std::size_t{32} << 20);
  waker waker_;
};

using samples = std::vector<double>;
/// By row and column: ticks per scope.
using results = std::map<std::pair<std::size_t, column>, samples>;

auto burst_of(column of) {
  switch (of) {
    case column::floor:
      return floor_burst;
    case column::clock:
      return clock_burst;
    case column::file:
      return file_burst;
    case column::tracy:
      return tracy_burst;
    default:
      return lotus_burst;
  }
}

/// Waits before the first sample, and scopes that fill the ring once, whose pages are then there.
/// The thread's state is then that of a long recording.
constexpr std::size_t warm_up = 50;
constexpr std::uint32_t filling = 10'000;

void measure(results& to, column of, std::size_t count) {
  idler between;
  const bool is_call = of == column::clock || of == column::file;
  void (*const burst)(std::uint32_t) = burst_of(of);
  for (std::size_t i = 0; i < warm_up; ++i) {
    between.pass(i % 2 == 0 ? before::sleep : before::wakeup);
    burst(10);
  }
  burst(filling);
  for (std::size_t r = 0; r < std::size(rows); ++r) {
    if (is_call && (rows[r].burst > 1 || rows[r].first == before::work)) continue;
    samples& found = to[{r, of}];
    for (std::size_t i = 0; i < count; ++i) {
      between.pass(rows[r].first);
      const std::uint64_t begin = hardware_ticks();
      burst(rows[r].burst);
      const std::uint64_t end = hardware_ticks();
      found.push_back(static_cast<double>(end - begin) / rows[r].burst);
    }
  }
}

/// Measures one column on several threads at once, and adds the samples of all of them.
void measure_on(std::size_t threads, results& to, column of, std::size_t count) {
  std::vector<results> found(threads);
  std::vector<std::thread> running;
  running.reserve(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] { measure(found[t], of, count); });
  }
  for (std::thread& thread : running) thread.join();
  for (const results& one : found) {
    for (const auto& [at, values] : one) {
      samples& all = to[at];
      all.insert(all.end(), values.begin(), values.end());
    }
  }
}

double quantile(samples& of, double share) {
  if (of.empty()) return 0;
  const auto at =
      of.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(of.size() - 1));
  std::nth_element(of.begin(), at, of.end());
  return *at;
}

/// Measures all columns in turn, several times. Returns false if nothing can be recorded.
bool measure_all(const std::string& directory, std::size_t threads, std::size_t count,
                 results& to) {
  constexpr std::size_t turns = 5;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const std::size_t part = std::max<std::size_t>(1, count / turns);
    for (const column of : {column::floor, column::clock, column::file}) {
      measure_on(threads, to, of, part);
    }
#ifdef TRACY_ENABLE
    measure_on(threads, to, column::tracy, part);
#endif
    for (const column of : {column::bare, column::full}) {
      lotus::options chosen;
      chosen.log_file = directory + "/bench";
      chosen.cpu_time = of == column::full;
      if (!lotus::start(chosen)) return false;
      measure_on(threads, to, of, part);
      lotus::stop();
      std::filesystem::remove_all(directory);
    }
  }
  return true;
}

void print(results& of, std::size_t threads) {
  std::printf("%zu thread%s; ticks of the clock per scope: least, median, 90 %%\n", threads,
              threads == 1 ? "" : "s");
  std::printf("%-40s", "");
  for (const char* title : titles) std::printf(" %22s", title);
  std::puts("");
  for (std::size_t r = 0; r < std::size(rows); ++r) {
    std::printf("%-40s", rows[r].title);
    for (std::size_t c = 0; c < columns; ++c) {
      samples& s = of[{r, static_cast<column>(c)}];
      if (s.empty()) {
        std::printf(" %22s", "");
        continue;
      }
      std::printf(" %6.0f %7.0f %7.0f", quantile(s, 0), quantile(s, 0.5), quantile(s, 0.9));
    }
    std::puts("");
  }
}

/// Prints the time per scope while a thread does nothing else, in each format.
bool print_flat_out(const std::string& directory) {
  constexpr std::uint32_t scopes = 1'000'000;
  const auto ticks = [](void (*burst)(std::uint32_t)) {
    const std::uint64_t begin = hardware_ticks();
    burst(scopes);
    return static_cast<double>(hardware_ticks() - begin) / scopes;
  };
  samples floor;
  samples formats[2];
  for (int turn = 0; turn < 9; ++turn) {
    floor.push_back(ticks(floor_burst));
    for (const bool compact : {false, true}) {
      lotus::options chosen;
      chosen.log_file = directory + "/flat";
      chosen.format = compact ? lotus::log_format::compact : lotus::log_format::text;
      if (!lotus::start(chosen)) return false;
      formats[compact ? 1 : 0].push_back(ticks(lotus_burst));
      lotus::stop();
      std::filesystem::remove_all(directory);
    }
  }
  std::puts("without pause; ticks per scope: least, median, 90 %");
  const auto print = [](const char* title, samples& s) {
    std::printf("%-40s %8.0f %8.0f %8.0f\n", title, quantile(s, 0), quantile(s, 0.5),
                quantile(s, 0.9));
  };
  print("floor", floor);
  print("text", formats[0]);
  print("compact", formats[1]);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200;
  std::vector<std::size_t> threads;
  for (int i = 2; i < argc; ++i) threads.push_back(std::strtoul(argv[i], nullptr, 10));
  if (threads.empty()) threads = {1, 2, 8};
  char directory[] = "/tmp/lotus_bench_XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  const std::string logs = std::string{directory} + "/logs";
  for (const std::size_t n : threads) {
    results found;
    if (!measure_all(logs, n, count, found)) return 1;
    print(found, n);
  }
  if (!print_flat_out(logs)) return 1;
  std::filesystem::remove_all(directory);
}
