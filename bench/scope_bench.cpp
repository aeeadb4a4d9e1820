// What a record costs, beside the floor: two reads of the clock and one 24-byte store.
//
// Machines differ and are shared, so only the ratios to the floor, measured in the same run, carry
// over. Prints them as a table at the end: minimum and median of the repetitions.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lotus/lotus.hpp"

namespace {

constexpr std::uint64_t chunk = 4096;  ///< records between two drains, which are not timed
constexpr std::uint64_t flat_out_records = 2'000'000;
constexpr std::size_t floor_records = 8192;

void barrier() {
  asm volatile("" ::: "memory");
}

/// Runs `body` in chunks, timing those alone; what a drain costs is measured by record_to_text.
template <class Body>
void timed_chunks(benchmark::State& state, std::uint64_t records_per_call, Body&& body) {
  using clock = std::chrono::steady_clock;
  const std::uint64_t calls = chunk / records_per_call;
  for (auto _ : state) {
    const auto before = clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) body();
    const auto after = clock::now();
    state.SetIterationTime(std::chrono::duration<double>(after - before).count());
    lotus::flush();
  }
}

void floor_cost(benchmark::State& state) {
  std::vector<lotus::detail::record> ring(floor_records);
  std::uint64_t at = 0;
  timed_chunks(state, 1, [&] {
    const std::uint64_t begin = lotus::detail::hardware_ticks();
    barrier();
    const std::uint64_t end = lotus::detail::hardware_ticks();
    ring[at++ % floor_records] = {begin, end, {}};
    barrier();
  });
}

void scope_cost(benchmark::State& state) {
  timed_chunks(state, 1, [] {
    LOTUS_SCOPE("bench");
    barrier();
  });
}

void dynamic_scope_cost(benchmark::State& state) {
  const std::string name = "RandomResizedCrop";
  timed_chunks(state, 1, [&] {
    LOTUS_SCOPE_DYNAMIC(name);
    barrier();
  });
}

void batch_scope_cost(benchmark::State& state) {
  std::uint64_t i = 0;
  timed_chunks(state, 1, [&] {
    LOTUS_BATCH_PREPROCESSED(i++);
    barrier();
  });
}

void stage_cost(benchmark::State& state) {
  std::uint64_t i = 0;
  timed_chunks(state, 1, [&] {
    LOTUS_STAGE("bench", i++ & 0xFFFF);
    barrier();
  });
}

void staged_cost(benchmark::State& state) {
  const auto function = lotus::staged("bench", [](std::uint32_t i) {
    barrier();
    return i;
  });
  std::uint32_t i = 0;
  timed_chunks(state, 1, [&] { benchmark::DoNotOptimize(function(i++)); });
}

void late_wait_cost(benchmark::State& state) {
  std::uint64_t i = 0;
  timed_chunks(state, 1, [&] {
    lotus::wait_for_batch wait;
    barrier();
    wait.got(i++);
  });
}

/// A piece begins and ends; the operation around them is not counted.
void async_piece_cost(benchmark::State& state) {
  lotus::async_scope operation{"bench"};
  operation.suspend();
  timed_chunks(state, 1, [&] {
    operation.resume();
    barrier();
    operation.suspend();
  });
}

void counter_cost(benchmark::State& state) {
  std::int64_t i = 0;
  timed_chunks(state, 1, [&] { LOTUS_COUNTER("bench", i++); });
}

void takes_cost(benchmark::State& state) {
  std::uint64_t i = 0;
  timed_chunks(state, 1, [&] {
    LOTUS_BATCH_TAKES(i / 32, i);
    ++i;
  });
}

auto five_operations() {
  const auto f = [](int x) {
    barrier();
    return x + 1;
  };
  return lotus::compose(lotus::op("a", f), lotus::op("b", f), lotus::op("c", f), lotus::op("d", f),
                        lotus::op("e", f));
}

void compose_of_5_cost(benchmark::State& state) {
  auto transform = five_operations();
  timed_chunks(state, 6, [&] { benchmark::DoNotOptimize(transform(1)); });
}

void empty_loop(benchmark::State& state) {
  for (auto _ : state) barrier();
}

void not_started_cost(benchmark::State& state) {
  for (auto _ : state) {
    LOTUS_SCOPE("bench");
    barrier();
  }
}

double process_cpu_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// CPU of all threads, user and system, from the scope to the text in the file.
void record_to_text(benchmark::State& state) {
  for (auto _ : state) {
    const double before = process_cpu_s();
    for (std::uint64_t i = 0; i < flat_out_records; ++i) {
      LOTUS_SCOPE("RandomResizedCrop");
      barrier();
    }
    lotus::flush();
    state.SetIterationTime(process_cpu_s() - before);
  }
}

/// Keeps each benchmark's repetitions and prints the ratios when all have run.
class ratio_table : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      times_ns_[{run.run_name.function_name, run.threads}].push_back(
          run.real_accumulated_time / static_cast<double>(run.iterations) *
          static_cast<double>(run.threads) * 1e9);
    }
  }

  void print() {
    std::printf("%-22s %7s %9s %9s %10s %10s\n", "", "threads", "min ns", "median ns", "min/floor",
                "med/floor");
    for (const std::int64_t threads : {1, 2}) {
      row("floor", "floor", threads, chunk);
      row("scope", "scope", threads, chunk);
      row("batch scope", "batch_scope", threads, chunk);
      row("scope, run-time name", "scope_dynamic", threads, chunk);
      row("stage", "stage", threads, chunk);
      row("staged function", "staged", threads, chunk);
      row("late wait", "late_wait", threads, chunk);
      row("asynchronous piece", "async_piece", threads, chunk);
      row("counter", "counter", threads, chunk);
      row("item into batch", "takes", threads, chunk);
      row("operation in compose", "compose_of_5", threads, chunk / 6 * 5);
      row("CPU of record to text", "record_to_text", threads, flat_out_records);
    }
    std::printf("%-22s %7d %9.2f %9.2f  above an empty loop\n", "scope, not started", 1,
                lowest({"not_started", 1}) - lowest({"empty_loop", 1}),
                median({"not_started", 1}) - median({"empty_loop", 1}));
  }

 private:
  using key = std::pair<std::string, std::int64_t>;  // name and threads

  double lowest(const key& k) {
    const auto& t = times_ns_[k];
    return t.empty() ? 0 : *std::min_element(t.begin(), t.end());
  }

  double median(const key& k) {
    auto& t = times_ns_[k];
    if (t.empty()) return 0;
    const auto middle = t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2);
    std::nth_element(t.begin(), middle, t.end());
    return *middle;
  }

  void row(const char* what, const std::string& name, std::int64_t threads, std::uint64_t records) {
    const auto per = static_cast<double>(records);
    const key k{name, threads};
    const key floor{"floor", threads};
    if (times_ns_[k].empty()) return;
    std::printf("%-22s %7d %9.2f %9.2f %10.3f %10.3f\n", what, static_cast<int>(threads),
                lowest(k) / per, median(k) / per, lowest(k) / per / (lowest(floor) / chunk),
                median(k) / per / (median(floor) / chunk));
  }

  std::map<key, std::vector<double>> times_ns_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  ratio_table table;
  // Before start(): what a program pays that carries Lotus and does not record.
  benchmark::RegisterBenchmark("empty_loop", empty_loop)->Repetitions(9);
  benchmark::RegisterBenchmark("not_started", not_started_cost)->Repetitions(9);
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::ClearRegisteredBenchmarks();

  char directory[] = "/tmp/lotus_bench_XXXXXX";
  if (mkdtemp(directory) == nullptr || !lotus::start(std::string{directory} + "/bench")) return 1;
  // First, before the others have filled the page cache with what the disk has yet to write.
  benchmark::RegisterBenchmark("record_to_text", record_to_text)
      ->UseManualTime()
      ->Iterations(1)
      ->Repetitions(9);
  struct {
    const char* name;
    void (*run)(benchmark::State&);
  } const timed[] = {{"floor", floor_cost},
                     {"scope", scope_cost},
                     {"scope_dynamic", dynamic_scope_cost},
                     {"batch_scope", batch_scope_cost},
                     {"stage", stage_cost},
                     {"staged", staged_cost},
                     {"late_wait", late_wait_cost},
                     {"async_piece", async_piece_cost},
                     {"counter", counter_cost},
                     {"takes", takes_cost},
                     {"compose_of_5", compose_of_5_cost}};
  for (const int threads : {1, 2}) {
    for (const auto& t : timed) {
      benchmark::RegisterBenchmark(t.name, t.run)
          ->Threads(threads)
          ->UseManualTime()
          ->Iterations(50)
          ->Repetitions(15);
    }
  }
  benchmark::RunSpecifiedBenchmarks(&table);
  lotus::stop();
  table.print();
  std::filesystem::remove_all(directory);
}
