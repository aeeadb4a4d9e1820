#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "map/attribute.hpp"
#include "map/mapping.hpp"
#include "names.hpp"
#include "table.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

std::string short_number(double value) {
  // NOLINTNEXTLINE(readability-magic-numbers)
  std::string text(32, '\0');
  const int n = std::snprintf(text.data(), text.size(), "%.4g", value);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

std::string members(const attribution& a, const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    text += (i == 0 ? "" : ",") + json_string(a.metrics[i].name) + ':';
    const double value = metric_value(a, values, i);
    if (a.metrics[i].kind == metric_kind::share) {
      text +=
          "{\"clockticks\":" + json_number(values[i]) + ",\"percent\":" + json_number(value) + '}';
    } else {
      text += json_number(value);
    }
  }
  return '{' + text + '}';
}

void print_json(const std::vector<attribution>& all, std::ostream& out) {
  std::string_view before_config;
  out << "{\"configs\":[";
  for (const attribution& a : all) {
    out << before_config << "\n{\"config\":" << json_string(a.name) << ",\"ops\":{";
    before_config = ",";
    std::string_view before_op;
    for (const auto& [op, values] : a.ops) {
      out << before_op << '\n' << json_string(op) << ':' << members(a, values);
      before_op = ",";
    }
    out << "},\n\"outside\":" << members(a, a.outside) << '}';
  }
  out << "\n]}\n";
}

void print_csv(const std::vector<attribution>& all, std::ostream& out) {
  out << "config,op,metric,value\n";
  for (const attribution& a : all) {
    const auto rows = [&](const std::string& op, const std::vector<double>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        out << csv_field(printable(a.name)) << ',' << csv_field(printable(op)) << ','
            << csv_field(printable(a.metrics[i].name)) << ','
            << json_number(metric_value(a, values, i)) << '\n';
      }
    };
    for (const auto& [op, values] : a.ops) rows(op, values);
    rows("", a.outside);
  }
}

/// A row per metric and a column per operation, for there are more metrics than operations.
void print_table(const attribution& a, std::ostream& out) {
  out << printable_line(a.name) << '\n';
  table numbers;
  std::vector<std::string> head{"per operation"};
  for (const auto& [op, values] : a.ops) head.push_back(op);
  head.emplace_back("outside");
  numbers.row(std::move(head));
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    const bool percent = a.metrics[i].kind == metric_kind::share;
    std::vector<std::string> row{a.metrics[i].name + (percent ? " %" : "")};
    for (const auto& [op, values] : a.ops) row.push_back(short_number(metric_value(a, values, i)));
    row.push_back(short_number(metric_value(a, a.outside, i)));
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

}  // namespace lotus::tool
