#include "mapping/read/counters.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "mapping/read/callgrind_reports.hpp"
#include "mapping/read/function_report.hpp"
#include "mapping/read/table_text.hpp"
#include "mapping/read/vendor_reports.hpp"

namespace lotus::tool {
namespace {

constexpr std::string_view gui_function = "Source Function / Function / Call Stack";

/// Returns the kind of a VTune column, according to its name and the unit of its values.
metric_kind kind_of(std::string_view column, std::string_view value) {
  if (column == "CPI Rate") return metric_kind::cpi;
  if (column == "Average CPU Frequency") return metric_kind::frequency;
  return !value.empty() && value.back() == '%' ? metric_kind::share : metric_kind::sum;
}

/// Returns the other columns that are needed to combine a metric's values of several functions.
std::vector<std::string_view> needed_for(metric_kind kind) {
  switch (kind) {
    case metric_kind::share:
      return {"Clockticks"};
    case metric_kind::cpi:
      return {"Clockticks", "Instructions Retired"};
    case metric_kind::frequency:
      return {"Clockticks", "CPU Time"};
    case metric_kind::sum:
      break;
  }
  return {};
}

void refuse_missing_columns(const std::string& path, const counter_table& table) {
  for (const metric& m : table.metrics) {
    for (const std::string_view needed : needed_for(m.kind)) {
      if (table.find(needed)) continue;
      throw input_error(path + ": " + m.name +
                        " cannot be given per operation without the column " + std::string(needed) +
                        "; copy the table with it");
    }
  }
}

/// Reads the columns with numbers of a table that was copied from VTune's window.
void read_gui(const std::string& path, std::string_view text, counter_table& table) {
  text_lines lines(text);
  std::string_view line;
  std::optional<table_head> head;
  std::vector<std::size_t> columns;
  std::set<std::size_t> known;  // columns in which a value has shown the kind of metric
  std::optional<std::size_t> module;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    const std::vector<std::string> fields = split_fields(line, '\t');
    if (!head) {
      head.emplace(fields);
      module = head->find("Module");
      continue;
    }
    if (fields.size() != head->names().size()) {
      throw input_error(
          at_line(path, lines.number(),
                  "the number of fields differs from the number of columns in the header"));
    }
    if (table.metrics.empty()) {
      // The columns after the column Module contain no numbers, only texts and addresses.
      for (std::size_t c = 1; c < module.value_or(fields.size()); ++c) {
        columns.push_back(c);
        table.metrics.push_back({head->names()[c], metric_kind::sum});
      }
    }
    counted_function counted;
    counted.function = fields[0];
    if (module && fields[*module] != "[Unknown]") counted.module = fields[*module];
    for (const std::size_t c : columns) {
      // A field is empty if VTune could not compute the metric; it counts as 0.
      const auto value = fields[c].empty() ? std::optional<double>(0) : number_in(fields[c]);
      if (!value) {
        throw input_error(
            at_line(path, lines.number(), "'" + fields[c] + "' is not a number of a known unit"));
      }
      if (!fields[c].empty()) {
        metric& of = table.metrics[counted.values.size()];
        const metric_kind kind = kind_of(of.name, fields[c]);
        if (known.insert(c).second) of.kind = kind;
        if (of.kind != kind) {
          throw input_error(
              at_line(path, lines.number(),
                      "of " + of.name + " some values are percentages and some are not"));
        }
      }
      counted.values.push_back(*value);
    }
    table.functions.push_back(std::move(counted));
  }
  refuse_missing_columns(path, table);
}

void read_report(const function_report& report, const std::string& metric_name,
                 counter_table& table) {
  table.metrics.push_back({metric_name, metric_kind::sum});
  for (const auto& [key, value] : report.functions) {
    const std::size_t bar = key.rfind('|');
    table.functions.push_back({key.substr(0, bar), key.substr(bar + 1), {value}});
  }
}

/// Adds a metric for each event of a perf report. If there are several events, the metrics have the
/// events' names.
void read_perf_tables(const std::vector<perf_table>& tables, counter_table& to) {
  std::map<std::string, std::vector<double>> by_function;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const function_report& report = tables[i].report;
    const std::string only = report.unit == "%" ? "Overhead, %" : report.unit;
    const std::string name = tables.size() > 1 ? tables[i].event + ", " + report.unit : only;
    to.metrics.push_back({name, metric_kind::sum});
    for (const auto& [key, value] : report.functions) {
      std::vector<double>& values = by_function[key];
      values.resize(tables.size());
      values[i] = value;
    }
  }
  for (auto& [key, values] : by_function) {
    const std::size_t bar = key.rfind('|');
    to.functions.push_back({key.substr(0, bar), key.substr(bar + 1), std::move(values)});
  }
}

void read_profile(const callgrind_profile& profile, counter_table& table) {
  if (table.metrics.empty()) {
    for (const std::string& event : profile.events) {
      table.metrics.push_back({event, metric_kind::sum});
    }
  }
  for (const auto& [key, counts] : profile.functions) {
    counted_function counted{key.first, key.second, {counts.begin(), counts.end()}};
    counted.values.resize(table.metrics.size());
    table.functions.push_back(std::move(counted));
  }
}

/// Reads a row of `perf stat -x,` (value,unit,event,…); returns nullopt for any other line.
std::optional<std::pair<std::string, double>> stat_row(std::string_view line) {
  const std::vector<std::string> fields = split_fields(line, ',');
  if (fields.size() < 5 || fields[2].empty()) return std::nullopt;
  if (fields[0].find("<not ") == 0) return std::pair{fields[2], 0.0};
  const auto value = number_in(fields[0]);
  if (!value) return std::nullopt;
  return std::pair{fields[2], *value};
}

bool read_perf_stat(std::string_view text, counter_table& table) {
  text_lines lines(text);
  std::string_view line;
  counted_function process;
  while (lines.next(line)) {
    if (trimmed(line).empty() || line.front() == '#') continue;
    const auto row = stat_row(line);
    if (!row) return false;
    table.metrics.push_back({row->first, metric_kind::sum});
    process.values.push_back(row->second);
  }
  table.whole_process = true;
  table.functions.push_back(std::move(process));
  return !table.metrics.empty();
}

}  // namespace

std::optional<std::size_t> counter_table::find(std::string_view metric_name) const noexcept {
  const auto at = std::find_if(metrics.begin(), metrics.end(),
                               [&](const metric& m) { return m.name == metric_name; });
  if (at == metrics.end()) return std::nullopt;
  return static_cast<std::size_t>(at - metrics.begin());
}

counter_table read_counters(const std::string& path) {
  const std::string text = read_text(path);
  counter_table table;
  table.name = std::filesystem::path(path).stem().string();
  if (text.compare(0, gui_function.size(), gui_function) == 0) {
    read_gui(path, text, table);
  } else if (looks_like_callgrind(text)) {
    for (const callgrind_profile& part : read_callgrind(path, text)) read_profile(part, table);
  } else if (looks_like_perf(text)) {
    read_perf_tables(read_perf(path, text), table);
  } else if (looks_like_vtune(text)) {
    read_report(read_vtune(path, text), "CPU Time", table);
  } else if (looks_like_uprof(text)) {
    const function_report report = read_uprof(path, text);
    read_report(report, report.metric.empty() ? "CPU_TIME" : report.metric, table);
  } else if (!read_perf_stat(text, table)) {
    throw input_error(path +
                      ": not a table of counters that is known; expected VTune's TAB-separated "
                      "table, perf report -t '|', perf stat -x, or callgrind's profile");
  }
  if (table.functions.empty()) throw input_error(path + ": contains no function");
  return table;
}

}  // namespace lotus::tool
