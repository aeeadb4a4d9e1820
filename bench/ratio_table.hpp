// Prints the times of benchmarks, divided by the time of the benchmark "floor" in the same run.
#ifndef LOTUS_BENCH_RATIO_TABLE_HPP
#define LOTUS_BENCH_RATIO_TABLE_HPP

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Number of records that are timed together. They are then written to the log, which is not timed.
inline constexpr std::uint64_t chunk = 4096;
inline constexpr std::uint64_t flat_out_records = 2'000'000;

/// Collects the times of all benchmarks and prints the ratios at the end.
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
      row("aggregated scope", "aggregated", threads, chunk);
      row("batch scope", "batch_scope", threads, chunk);
      row("scope, run-time name", "scope_dynamic", threads, chunk);
      row("stage", "stage", threads, chunk);
      row("late wait", "late_wait", threads, chunk);
      row("asynchronous piece", "async_piece", threads, chunk);
      row("counter", "counter", threads, chunk);
      row("item into batch", "takes", threads, chunk);
      row("operation in compose", "compose_of_5", threads, chunk / 6 * 5);
      row("CPU of record to text", "record_to_text", threads, flat_out_records);
      row("CPU of record to block", "record_to_block", threads, flat_out_records);
    }
    std::printf("%-22s %7d %9.2f %9.2f  above an empty loop\n", "scope, not started", 1,
                lowest({"not_started", 1}) - lowest({"empty_loop", 1}),
                median({"not_started", 1}) - median({"empty_loop", 1}));
  }

 private:
  using key = std::pair<std::string, std::int64_t>;  // name of the benchmark and number of threads

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

}  // namespace bench

#endif  // LOTUS_BENCH_RATIO_TABLE_HPP
