#include "commands/map/map_attribute.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/csv.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "describe/description.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {

/// A share of the clock ticks.
struct clockticks_share {
  double clockticks = 0;
  double percent = 0;
};
const description<clockticks_share>& description_of(const clockticks_share*) {
  static const description<clockticks_share> all(
      "clockticks_share", "a share of the clock ticks",
      {
          {"clockticks", [](const clockticks_share& of) { return if_finite(of.clockticks); },
           "clock ticks"},
          {"percent", [](const clockticks_share& of) { return if_finite(of.percent); }, "per cent"},
      });
  return all;
}

namespace {

using metric_values =
    std::vector<std::pair<std::string, std::variant<std::optional<double>, clockticks_share>>>;

metric_values metrics_of(const attribution& a, const std::vector<double>& values) {
  metric_values shown;
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    const double value = metric_value(a, values, i);
    auto& [name, of] = shown.emplace_back(a.metrics[i].name, if_finite(value));
    if (a.metrics[i].kind == metric_kind::share) of = clockticks_share{values[i], value};
  }
  return shown;
}

void print_csv(const std::vector<attribution>& all, std::ostream& out) {
  out << "config,op,metric,value\n";
  for (const attribution& a : all) {
    const auto rows = [&](const std::string& op, const std::vector<double>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        out << csv_field(a.name) << ',' << csv_field(op) << ',' << csv_field(a.metrics[i].name)
            << ',' << json_number(metric_value(a, values, i)) << '\n';
      }
    };
    for (const auto& [op, values] : a.ops) rows(op, values);
    rows("", a.outside);
  }
}

/// Prints a row per metric and a column per operation, because metrics are more numerous.
void print_table(const attribution& a, std::ostream& out) {
  out << printable_line(a.name) << '\n';
  table numbers(table_form::blocks);
  std::vector<std::string> head{"per operation"};
  for (const auto& [op, values] : a.ops) head.push_back(op);
  head.emplace_back("outside");
  numbers.row(std::move(head));
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    const bool percent = a.metrics[i].kind == metric_kind::share;
    std::vector<std::string> row{a.metrics[i].name + (percent ? " %" : "")};
    for (const auto& [op, values] : a.ops) {
      row.push_back(significant(metric_value(a, values, i), 4));
    }
    row.push_back(significant(metric_value(a, a.outside, i), 4));
    numbers.row(std::move(row));
  }
  numbers.print(out);
}

}  // namespace

const description<attribution>& description_of(const attribution*) {
  using a = const attribution&;
  static const description<attribution> all(
      "table", "a table of counters",
      {
          {"config", &attribution::name, "its name"},
          {"ops",
           [](a of) {
             std::vector<std::pair<std::string, metric_values>> ops;
             ops.reserve(of.ops.size());
             for (const auto& [op, values] : of.ops) ops.emplace_back(op, metrics_of(of, values));
             return ops;
           },
           "by operation and counter: its value; a share is an object"},
          {"outside", [](a of) { return metrics_of(of, of.outside); },
           "by counter: what belongs to no operation"},
      });
  return all;
}

const description<attributions>& description_of(const attributions*) {
  static const description<attributions> all(
      "attributions", "hardware counters, by operation",
      {{"configs", &attributions::all, "one for each table of counters"}});
  return all;
}

int run_map_attribute(const map_attribute_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  if (options.inputs.traces.empty() == options.inputs.elapsed.empty()) {
    throw usage_error(
        "give the operations' times by either --trace DIR (logs) or --elapsed FILE (CSV)");
  }
  const attributions found{attribute_all(options.inputs, diagnostics)};
  if (options.print == print_as::json) print_json(found, out);
  if (options.print == print_as::csv) print_csv(found.all, out);
  if (options.print != print_as::table) return exit_fine;
  std::string_view before;
  for (const attribution& a : found.all) {
    out << before;
    print_table(a, out);
    before = "\n";
  }
  return exit_fine;
}

}  // namespace lotus::tool
