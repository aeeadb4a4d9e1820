#include "model/figures.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/statistics/distribution.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

template <class Value>
figure or_missing(const std::optional<Value>& value) {
  return value ? figure(*value) : figure();
}

/// Returns one member of the operation's CPU times, such as the time that the threads were blocked.
/// The result is a missing figure if CPU time was not measured.
figure cpu_part(const figures& of, std::optional<std::int64_t> cpu_split::*part) {
  return of.cpu ? or_missing((*of.cpu).*part) : figure();
}

/// Returns one member of the operation's heap use, divided by the number of its calls, such as the
/// allocated bytes per call. The result is a missing figure if allocations were not counted.
figure heap_part(const figures& of, std::uint64_t heap_use::*part) {
  if (!of.heap || of.time.count == 0) return {};
  return static_cast<double>((*of.heap).*part) / static_cast<double>(of.time.count);
}

figure share_of_mean(const distribution& d) {
  return d.mean_ns != 0 ? figure(d.std_ns / d.mean_ns) : figure();
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

const std::vector<figure_field>& figure_fields() {
  constexpr figure_unit count = figure_unit::count;
  constexpr figure_unit time = figure_unit::time_ns;
  constexpr figure_unit share = figure_unit::share;
  constexpr unsigned json = op_json | quantity_json;
  constexpr unsigned report = report_op | report_quantity;
  using f = const figures&;
  static const std::vector<figure_field> fields{
      {"count", "count", [](f of) { return figure(static_cast<std::int64_t>(of.time.count)); },
       count, json | stats_csv | report, 1, 1, true},
      {"mean_ns", "mean", [](f of) { return figure(of.time.mean_ns); }, time,
       json | stats_csv | report, 2, 2},
      {"std_ns", "std", [](f of) { return figure(of.time.std_ns); }, time,
       json | stats_csv | report, 3, 3},
      {"std_of_mean", "std/mean", [](f of) { return share_of_mean(of.time); }, share, 0, 0, 4,
       false, "-"},
      {"min_ns", "min", [](f of) { return figure(of.time.min_ns); }, time,
       json | stats_csv | report_quantity, 4, 5},
      {"p25_ns", "p25", [](f of) { return figure(of.time.p25_ns); }, time,
       quantity_json | stats_csv | report_quantity, 0, 6},
      {"p50_ns", "p50", [](f of) { return figure(of.time.p50_ns); }, time,
       json | stats_csv | report, 5, 7},
      {"p75_ns", "p75", [](f of) { return figure(of.time.p75_ns); }, time,
       quantity_json | stats_csv | report_quantity, 0, 8},
      {"p90_ns", "p90", [](f of) { return figure(of.time.p90_ns); }, time,
       op_json | stats_csv | report_op, 6, 0},
      {"p99_ns", "p99", [](f of) { return figure(of.time.p99_ns); }, time,
       op_json | stats_csv | report_op, 7, 0},
      {"max_ns", "max", [](f of) { return figure(of.time.max_ns); }, time,
       json | stats_csv | report, 8, 9},
      {"iqr_ns", "iqr", [](f of) { return figure(of.time.p75_ns - of.time.p25_ns); }, time, 0, 0,
       10},
      {"above_500ms", "% over 500 ms", [](f of) { return or_missing(of.above_500ms); }, share, 0, 0,
       11, false, "-"},
      {"total_ns", "total", [](f of) { return figure(of.time.total_ns); }, time,
       json | stats_csv | report_op, 11, 12, true},
      {"self_ns", "self", [](f of) { return or_missing(of.self_ns); }, time,
       op_json | stats_csv | report_op, 12, 0},
      {"cpu_ns", "on CPU", [](f of) { return of.cpu ? figure(of.cpu->cpu_ns) : figure(); }, time,
       json | stats_csv | report_op, 13, 13, false, "-", true},
      {"run_queue_ns", "waits for CPU", [](f of) { return cpu_part(of, &cpu_split::run_queue_ns); },
       time, json | stats_csv | report_op, 14, 14, false, "-", true},
      {"blocked_ns", "blocked", [](f of) { return cpu_part(of, &cpu_split::blocked_ns); }, time,
       json | stats_csv | report_op, 15, 15, false, "-", true},
      {"below_10ms", "% under 10 ms", [](f of) { return or_missing(of.below_10ms); }, share,
       op_json | report_op, 9, 0},
      {"below_100us", "% under 100 us", [](f of) { return or_missing(of.below_100us); }, share,
       op_json | report_op, 10, 0},
      {"allocated_bytes",
       "allocated",
       [](f of) { return heap_part(of, &heap_use::allocated_bytes); },
       count,
       report_op,
       0,
       0,
       false,
       {},
       false,
       true},
      {"allocations",
       "allocations",
       [](f of) { return heap_part(of, &heap_use::allocations); },
       count,
       report_op,
       0,
       0,
       false,
       {},
       false,
       true},
      {"retained_bytes",
       "retained",
       [](f of) { return heap_part(of, &heap_use::retained_bytes); },
       count,
       report_op,
       0,
       0,
       false,
       {},
       false,
       true},
      {"peak_bytes",
       "peak",
       [](f of) {
         return of.heap ? figure(static_cast<std::int64_t>(of.heap->peak_bytes)) : figure();
       },
       count,
       report_op,
       0,
       0,
       false,
       {},
       false,
       true},
  };
  return fields;
}

std::vector<const figure_field*> columns_of(unsigned figure_field::*column, bool cpu) {
  std::vector<const figure_field*> columns;
  for (const figure_field& field : figure_fields()) {
    if (field.*column != 0 && (cpu || !field.of_cpu)) columns.push_back(&field);
  }
  std::sort(columns.begin(), columns.end(),
            [column](const auto* a, const auto* b) { return a->*column < b->*column; });
  return columns;
}

void write_figures(json_writer& json, const figures& of, figure_output output, bool null_of_none) {
  const bool none = null_of_none && of.time.count == 0;
  for (const figure_field& field : figure_fields()) {
    if ((field.shown & output) == 0 || (field.of_cpu && !of.cpu) || (field.of_heap && !of.heap)) {
      continue;
    }
    const std::string text = none && !field.of_none ? std::string() : exact_text(field.get(of));
    json.key(field.key).raw(text.empty() ? "null" : text);
  }
}

std::string exact_text(const figure& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* const real = std::get_if<double>(&value)) return json_number(*real);
  return {};
}

std::string human_text(const figure_field& field, const figures& of) {
  const figure value = field.get(of);
  double number = 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    if (field.unit == figure_unit::count) return std::to_string(*whole);
    number = static_cast<double>(*whole);
  } else if (const auto* const real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    return std::string(field.missing);
  }
  return field.unit == figure_unit::share ? human_share(number) : human_time(number);
}

}  // namespace lotus::tool
