#include "model/figures.hpp"

#include <utility>

#include "describe/description.hpp"

namespace lotus::tool {
namespace {

/// Returns a figure that an empty set of durations does not have.
template <class Value>
auto of_durations(Value distribution::*figure) {
  return [figure](const figures& of) {
    return of.time.count > 0 ? std::optional(of.time.*figure) : std::nullopt;
  };
}

/// Returns a part of the CPU times, such as the time that the threads were blocked.
auto of_cpu_times(std::optional<std::int64_t> cpu_split::*part) {
  return [part](const figures& of) { return of.cpu ? (*of.cpu).*part : std::nullopt; };
}

/// Returns a part of the heap use, divided by the number of calls.
auto per_call(std::uint64_t heap_use::*part) {
  return [part](const figures& of) {
    return of.heap && of.time.count > 0 ? std::optional(static_cast<double>((*of.heap).*part) /
                                                        static_cast<double>(of.time.count))
                                        : std::nullopt;
  };
}

std::optional<double> std_of_mean(const figures& of) {
  return of.time.count > 0 && of.time.mean_ns != 0 ? std::optional(of.time.std_ns / of.time.mean_ns)
                                                   : std::nullopt;
}

bool has_cpu(const figures& of) {
  return of.cpu.has_value();
}
bool has_heap(const figures& of) {
  return of.heap.has_value();
}

}  // namespace

figures figures_of(std::string name, std::vector<std::int64_t>& durations_ns) {
  figures f;
  f.name = std::move(name);
  f.below_10ms = share_below(durations_ns, 10'000'000);
  f.below_100us = share_below(durations_ns, 100'000);
  f.time = describe(durations_ns);
  return f;
}

figures figures_of(const op_samples& op) {
  figures f;
  if (op.durations.are_all()) {
    std::vector<std::int64_t> durations_ns = op.durations.values();
    f = figures_of(std::string(op.name), durations_ns);
  } else {
    f.name = op.name;
    f.time = op.details().time;
    const auto count = static_cast<double>(f.time.count);
    f.below_10ms = static_cast<double>(op.durations.below_10ms()) / count;
    f.below_100us = static_cast<double>(op.durations.below_100us()) / count;
  }
  f.self_ns = op.self_ns;
  f.cpu = op.details().cpu;
  f.heap = op.details().heap;
  return f;
}

figures figures_of(const aggregated_op& op) {
  figures f;
  f.name = op.name;
  f.below_10ms = share_below(op, 10'000'000);
  f.below_100us = share_below(op, 100'000);
  f.time = describe(op);
  f.self_ns = op.self_ns;
  return f;
}

std::vector<figures> figures_of(const std::vector<aggregated_op>& ops) {
  std::vector<figures> all;
  all.reserve(ops.size());
  for (const aggregated_op& op : ops) all.push_back(figures_of(op));
  return all;
}

const description<figures>& description_of(const figures*) {
  constexpr unsigned json = op_json | quantity_json | latency_json;
  constexpr unsigned report = report_op | report_quantity;
  constexpr unsigned times = op_table | quantity_table;
  constexpr unsigned lists = times | stage_table | async_table;
  constexpr unsigned high = op_json | latency_json | stats_csv | report_op | op_table | sorting;
  constexpr unsigned cpu =
      of_cpu | op_json | quantity_json | stats_csv | report_op | times | stage_table;
  constexpr unit time = unit::time_ns;
  using f = const figures&;
  static const description<figures> all(
      "figures", "statistics of durations",
      {
          {"name", &figures::name, "the name in the logs", in{report_op}},
          {"count", [](f of) { return of.time.count; },
           "how many there were, for example calls, batches or copies",
           in{json | stats_csv | report | lists | sorting}, column{"count"}},
          {"mean_ns", of_durations(&distribution::mean_ns), "the sum divided by the count",
           in{json | stats_csv | report | lists | sorting}, column{"mean", time}},
          {"std_ns", of_durations(&distribution::std_ns),
           "standard deviation: how far values typically are from the mean",
           in{json | stats_csv | report | times}, column{"std", time, 9}},
          {"std_of_mean", std_of_mean, "standard deviation divided by the mean", in{quantity_table},
           column{"std/mean", unit::share, 6}},
          {"min_ns", of_durations(&distribution::min_ns),
           "the shortest time, or the smallest value",
           in{json | stats_csv | report_quantity | times}, column{"min", time, 4}},
          {"p25_ns", of_durations(&distribution::p25_ns), "25 % of the values are at most this",
           in{quantity_json | latency_json | stats_csv | report_quantity | quantity_table},
           column{"p25", time, 3}},
          {"p50_ns", of_durations(&distribution::p50_ns),
           "half of the values are at most this: the median",
           in{json | stats_csv | report | lists | sorting}, column{"p50", time, 12}},
          {"p75_ns", of_durations(&distribution::p75_ns), "75 % of the values are at most this",
           in{quantity_json | latency_json | stats_csv | report_quantity | quantity_table},
           column{"p75", time, 7}},
          {"p90_ns", of_durations(&distribution::p90_ns), "90 % of the values are at most this",
           in{high}, column{"p90", time, 8}},
          {"p99_ns", of_durations(&distribution::p99_ns), "99 % of the values are at most this",
           in{high | stage_table | async_table}, column{"p99", time, 14}},
          {"max_ns", of_durations(&distribution::max_ns), "the longest time, or the largest value",
           in{json | stats_csv | report | lists | sorting}, column{"max", time, 13}},
          {"iqr_ns", [](f of) { return of.time.p75_ns - of.time.p25_ns; },
           "interquartile range: p75 - p25", in{quantity_table}, column{"iqr", time, 2}},
          {"above_500ms", &figures::above_500ms, "share of the times that are longer than 500 ms",
           in{quantity_table}, column{"% over 500 ms", unit::share, 11}},
          {"below_10ms", &figures::below_10ms, "share of the times that are shorter than 10 ms",
           in{op_json | report_op | op_table}, column{"% under 10 ms", unit::share, 5}},
          {"below_100us", &figures::below_100us, "share of the times that are shorter than 100 us",
           in{op_json | report_op | op_table}, column{"% under 100 us", unit::share, 1}},
          {"total_ns", [](f of) { return of.time.total_ns; },
           "sum over all threads, so it can be longer than the run",
           in{json | stats_csv | report_op | lists | sorting}, column{"total", time}},
          {"self_ns", &figures::self_ns, "total time minus the time of the operations inside",
           in{op_json | stats_csv | report_op | op_table | sorting}, column{"self", time}},
          {"cpu_ns", [](f of) { return of.cpu ? std::optional(of.cpu->cpu_ns) : std::nullopt; },
           "part of the total time in which the thread ran on a CPU", has_cpu, in{cpu},
           column{"on CPU", time}},
          {"run_queue_ns", of_cpu_times(&cpu_split::run_queue_ns),
           "part in which the thread could have run, but no CPU was free", has_cpu, in{cpu},
           column{"waits for CPU", time, 10}},
          {"blocked_ns", of_cpu_times(&cpu_split::blocked_ns),
           "part in which the thread slept or waited for a disk, a lock, ...", has_cpu, in{cpu},
           column{"blocked", time}},
          {"allocated_bytes", per_call(&heap_use::allocated_bytes),
           "mean number of bytes that a call allocated", has_heap, in{report_op},
           column{"allocated", unit::bytes}},
          {"allocations", per_call(&heap_use::allocations), "mean number of allocations in a call",
           has_heap, in{report_op}, column{"allocations", unit::three_digits}},
          {"retained_bytes", per_call(&heap_use::retained_bytes),
           "mean number of bytes that a call allocated but did not free", has_heap, in{report_op},
           column{"retained", unit::bytes}},
          {"peak_bytes",
           [](f of) { return of.heap ? std::optional(of.heap->peak_bytes) : std::nullopt; },
           "largest growth of the thread's memory within a call", has_heap, in{report_op},
           column{"peak", unit::bytes}},
      });
  return all;
}

void write_figures(json_writer& json, const figures& of, figure_output output) {
  for (const field& one : description_of(&of).fields()) {
    if ((one.outputs & output) != 0 && one.has(&of)) one.write(json, &of);
  }
}

}  // namespace lotus::tool
