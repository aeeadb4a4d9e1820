#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "map/join.hpp"
#include "map/located_samples.hpp"
#include "map/mapping.hpp"
#include "names.hpp"
#include "table.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

/// The largest first.
std::vector<std::pair<std::string, std::uint64_t>> by_size(
    const std::map<std::string, std::uint64_t>& counts) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

double share_of(const joined_op& op, const joined_run& run) {
  const auto all = static_cast<double>(run.samples());
  return all > 0 ? static_cast<double>(op.samples) / all : 0;
}

std::string counts_object(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, value] : by_size(counts)) {
    text += (text.empty() ? "" : ",") + json_string(name) + ':' + std::to_string(value);
  }
  return '{' + text + '}';
}

std::string op_object(const joined_op& op, const joined_run& run) {
  const auto ns = cpu_ns(op);
  return "{\"samples\":" + std::to_string(op.samples) +
         ",\"cpu_ns\":" + (ns ? std::to_string(*ns) : "null") +
         ",\"share\":" + json_number(share_of(op, run)) +
         ",\"functions\":" + counts_object(op.functions) +
         ",\"counters\":" + counts_object(op.counters) + '}';
}

void print_json(const joined_run& run, std::ostream& out) {
  std::string_view before;
  out << "{\"ops\":{";
  for (const auto& [name, op] : run.ops) {
    out << before << '\n' << json_string(name) << ':' << op_object(op, run);
    before = ",";
  }
  out << "},\n\"outside\":" << op_object(run.outside, run) << "}\n";
}

void print_csv(const joined_run& run, std::ostream& out) {
  out << "op,function,module,samples\n";
  const auto rows = [&out](const std::string& name, const joined_op& op) {
    for (const auto& [key, samples] : by_size(op.functions)) {
      const std::size_t bar = key.rfind('|');
      out << csv_field(printable(name)) << ',' << csv_field(printable(key.substr(0, bar))) << ','
          << csv_field(printable(key.substr(bar + 1))) << ',' << samples << '\n';
    }
  };
  for (const auto& [name, op] : run.ops) rows(name, op);
  rows("", run.outside);
}

void print_tables(const joined_run& run, std::ostream& out) {
  constexpr std::size_t most_functions = 10;
  table summary;
  summary.row({"operation", "samples", "CPU time", "share"});
  const auto add = [&](const std::string& name, const joined_op& op) {
    const auto ns = cpu_ns(op);
    summary.row({name, std::to_string(op.samples), ns ? human_time(static_cast<double>(*ns)) : "-",
                 human_share(share_of(op, run))});
  };
  for (const auto& [name, op] : run.ops) add(name, op);
  add("(outside)", run.outside);
  summary.print(out);
  const auto functions = [&](const std::string& name, const joined_op& op) {
    if (op.samples == 0) return;
    out << '\n' << printable_line(name) << '\n';
    table rows;
    rows.row({"function|module", "samples", "share"});
    std::size_t shown = 0;
    for (const auto& [key, samples] : by_size(op.functions)) {
      if (shown++ == most_functions) {
        rows.row({"... " + std::to_string(op.functions.size() - most_functions) + " more"});
        break;
      }
      rows.row({shortened(key), std::to_string(samples),
                human_share(static_cast<double>(samples) / static_cast<double>(op.samples))});
    }
    rows.print(out);
  };
  for (const auto& [name, op] : run.ops) functions(name, op);
  functions("(outside)", run.outside);
}

}  // namespace

std::optional<std::uint64_t> cpu_ns(const joined_op& op) {
  for (const auto& [event, value] : op.counters) {
    if (is_cpu_time(event)) return value;
  }
  return op.samples == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
}

void print_joined(const joined_run& run, print_as print, std::ostream& out) {
  if (print == print_as::json) return print_json(run, out);
  if (print == print_as::csv) return print_csv(run, out);
  print_tables(run, out);
}

}  // namespace lotus::tool
