// Measures how much recording costs, relative to a floor: two clock readings and one 24-byte store.
//
// Compare only the ratios to the floor of the same run between machines, because times differ
// between machines and depend on other load. A table at the end shows minimum and median of the
// repetitions.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lotus/base/ticks.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/record.hpp"
#include "ratio_table.hpp"

namespace {

using bench::chunk;
using bench::flat_out_records;
constexpr std::size_t floor_records = 8192;

void barrier() {
  asm volatile("" ::: "memory");
}

/// Calls `body` in chunks of `chunk` records and times only these. Between chunks, the records are
/// written to the log, which is not timed; record_to_text measures this cost.
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

void aggregated_scope_cost(benchmark::State& state) {
  timed_chunks(state, 1, [] {
    LOTUS_SCOPE_AGGREGATED("bench");
    barrier();
  });
}

void scope_with_arguments_cost(benchmark::State& state) {
  const int width = 224;
  timed_chunks(state, 1, [&] {
    LOTUS_SCOPE_ARGS("bench", width, "px");
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

void late_wait_cost(benchmark::State& state) {
  std::uint64_t i = 0;
  timed_chunks(state, 1, [&] {
    lotus::batch_wait wait;
    barrier();
    wait.consumed(i++);
  });
}

/// Measures how long it takes to begin and end a segment of an existing asynchronous operation.
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
  return lotus::compose(lotus::operation{"a", f}, lotus::operation{"b", f},
                        lotus::operation{"c", f}, lotus::operation{"d", f},
                        lotus::operation{"e", f});
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

/// Measures the CPU time (user and system, of all threads) that it takes to record scopes and to
/// write them all to the log.
void record_to_file(benchmark::State& state) {
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

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::ratio_table table;
  // These benchmarks run before start(): they measure the cost in a program that never records.
  benchmark::RegisterBenchmark("empty_loop", empty_loop)->Repetitions(9);
  benchmark::RegisterBenchmark("not_started", not_started_cost)->Repetitions(9);
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::ClearRegisteredBenchmarks();

  char directory[] = "/tmp/lotus_bench_XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  lotus::options chosen;
  chosen.log_file = std::string{directory} + "/compact/bench";
  chosen.format = lotus::log_format::compact;
  const auto time_record_to_file = [](const char* name) {
    benchmark::RegisterBenchmark(name, record_to_file)
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(9);
  };
  if (!lotus::start(chosen)) return 1;
  time_record_to_file("record_to_block");
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::ClearRegisteredBenchmarks();
  lotus::stop();
  if (!lotus::start(std::string{directory} + "/bench")) return 1;
  // Run record_to_text before all other benchmarks. Later, the page cache is full of data that must
  // be written to the disk.
  time_record_to_file("record_to_text");
  struct {
    const char* name;
    void (*run)(benchmark::State&);
  } const timed[] = {{"floor", floor_cost},
                     {"scope", scope_cost},
                     {"aggregated", aggregated_scope_cost},
                     {"scope_args", scope_with_arguments_cost},
                     {"scope_dynamic", dynamic_scope_cost},
                     {"batch_scope", batch_scope_cost},
                     {"stage", stage_cost},
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
