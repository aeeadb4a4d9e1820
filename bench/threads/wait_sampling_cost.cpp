// Measures by how much samples of waits slow down threads that lock and unlock one mutex without
// pause, and how much CPU time the thread that takes the samples uses. Prints the medians of pairs
// of processes, one with the default rate and one without samples, which run in turn.
//
// Usage: wait_sampling_cost [PAIRS [SECONDS [THREADS]]] (default: 30 pairs of 1 s, 8 threads)
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp, setenv
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <lotus/lotus.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

struct measurement {
  double locks_per_second = 0;
  /// CPU seconds of the library's own threads, divided by the duration of the run.
  double sampler_cpus = 0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

measurement lock_and_unlock(std::size_t count, double duration) {
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> locks{0};
  std::atomic<double> cpu_of_threads{0};
  std::mutex sum;
  const auto start = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds(RUSAGE_SELF);
  const double own_before = cpu_seconds(RUSAGE_THREAD);
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      LOTUS_SCOPE("LockAndUnlock");
      std::uint64_t own = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const std::lock_guard<std::mutex> lock(mutex);
        ++own;
      }
      locks += own;
      const std::lock_guard<std::mutex> lock(sum);
      cpu_of_threads = cpu_of_threads + cpu_seconds(RUSAGE_THREAD);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(duration));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double others = cpu_seconds(RUSAGE_SELF) - cpu_before - cpu_of_threads -
                        (cpu_seconds(RUSAGE_THREAD) - own_before);
  return {static_cast<double>(locks) / took, others / took};
}

/// Measures in a forked process, because a process reads the environment variable only once.
measurement in_process(const std::string& directory, bool sampled, std::size_t threads,
                       double duration) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    if (sampled) {
      unsetenv("LOTUS_WAIT_SAMPLES_PER_S");
    } else {
      setenv("LOTUS_WAIT_SAMPLES_PER_S", "0", 1);
    }
    lotus::start(directory + "/" + std::to_string(getpid()) + "/log");
    const measurement result = lock_and_unlock(threads, duration);
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    lotus::stop();
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  measurement result;
  const bool read_all = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!read_all || status != 0) std::exit(1);
  return result;
}

/// Prints the median of `values` and a 95 % interval of it, from the order statistics.
void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const double half = 0.98 * std::sqrt(static_cast<double>(count));
  const double middle = static_cast<double>(count) / 2;
  const auto low = static_cast<std::size_t>(std::max(middle - half, 0.0));
  const auto high = std::min(static_cast<std::size_t>(middle + half), count - 1);
  std::printf("%-44s median %6.2f %%  95 %% interval %6.2f to %6.2f %%\n", what,
              values[count / 2] * 100, values[low] * 100, values[high] * 100);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t pairs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 30;
  const double duration = argc > 2 ? std::strtod(argv[2], nullptr) : 1;
  const std::size_t threads = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 8;
  std::string directory =
      (std::filesystem::temp_directory_path() / "lotus_wait_sampling_cost_XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  std::vector<double> slower;
  std::vector<double> cpus;
  for (std::size_t i = 0; i < pairs; ++i) {
    measurement with;
    measurement without;
    for (std::size_t turn = 0; turn < 2; ++turn) {
      const bool sampled = (i + turn) % 2 == 0;
      (sampled ? with : without) = in_process(directory, sampled, threads, duration);
    }
    slower.push_back(1 - with.locks_per_second / without.locks_per_second);
    cpus.push_back(with.sampler_cpus - without.sampler_cpus);
  }
  std::filesystem::remove_all(directory);
  std::printf("%zu pairs of %.2g s, %zu threads that lock one mutex without pause\n", pairs,
              duration, threads);
  print("slower because of samples", slower);
  print("CPU time of the samples, of one CPU", cpus);
}
