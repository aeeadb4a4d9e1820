#include "commands/map/map_attribute.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/csv.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "mapping/attribution.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {
namespace {

std::string four_digits(double value) {
  // NOLINTNEXTLINE(readability-magic-numbers)
  std::string text(32, '\0');
  const int n = std::snprintf(text.data(), text.size(), "%.4g", value);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

void write_metrics(const attribution& a, const std::vector<double>& values, json_writer& to) {
  to.begin_object();
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    to.key(a.metrics[i].name);
    const double value = metric_value(a, values, i);
    if (a.metrics[i].kind == metric_kind::share) {
      to.begin_object().member("clockticks", values[i]).member("percent", value).end_object();
    } else {
      to.value(value);
    }
  }
  to.end_object();
}

void print_json(const std::vector<attribution>& all, std::ostream& out) {
  std::string text;
  json_writer to(text);
  to.begin_object().key("configs").begin_array();
  for (const attribution& a : all) {
    to.newline().begin_object().member("config", a.name).key("ops").begin_object();
    for (const auto& [op, values] : a.ops) {
      to.newline().key(op);
      write_metrics(a, values, to);
    }
    to.end_object().newline().key("outside");
    write_metrics(a, a.outside, to);
    to.end_object();
  }
  to.newline().end_array().end_object();
  out << text << '\n';
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
    for (const auto& [op, values] : a.ops) row.push_back(four_digits(metric_value(a, values, i)));
    row.push_back(four_digits(metric_value(a, a.outside, i)));
    numbers.row(std::move(row));
  }
  numbers.print(out);
}

}  // namespace

void print_attributions(const std::vector<attribution>& all, print_as print, std::ostream& out) {
  if (print == print_as::json) return print_json(all, out);
  if (print == print_as::csv) return print_csv(all, out);
  std::string_view before;
  for (const attribution& a : all) {
    out << before;
    print_table(a, out);
    before = "\n";
  }
}

int run_map_attribute(const map_attribute_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  if (options.inputs.traces.empty() == options.inputs.elapsed.empty()) {
    throw usage_error(
        "give the operations' times by either --trace DIR (logs) or --elapsed FILE (CSV)");
  }
  print_attributions(attribute_all(options.inputs, diagnostics), options.print, out);
  return exit_fine;
}

}  // namespace lotus::tool
