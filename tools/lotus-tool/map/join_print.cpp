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

#include "map/event_names.hpp"
#include "map/join.hpp"
#include "map/mapping.hpp"
#include "names.hpp"
#include "table.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

const joined_samples& total_of(const joined_samples& samples) {
  return samples;
}

const joined_samples& total_of(const joined_function& function) {
  return function.total;
}

/// The largest first.
template <class Value>
std::vector<std::pair<std::string, Value>> by_value(const std::map<std::string, Value>& values) {
  std::vector<std::pair<std::string, Value>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return total_of(a.second).value > total_of(b.second).value;
  });
  return sorted;
}

/// {"name":count,…}
template <class Counts, class CountOf>
std::string counts_object(const Counts& counts, CountOf&& count_of) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ",") + json_string(name) + ':' + std::to_string(count_of(count));
  }
  return '{' + text + '}';
}

/// {"name":samples,…}
template <class Value>
std::string samples_object(const std::map<std::string, Value>& values) {
  return counts_object(by_value(values), [](const auto& of) { return total_of(of).samples; });
}

/// {"function":{"inlined":samples,…},…} of the functions that have any.
std::string inlined_object(const joined_op& op) {
  std::string text;
  for (const auto& [key, function] : by_value(op.functions)) {
    if (function.inlined.empty()) continue;
    text += (text.empty() ? "" : ",") + json_string(key) + ':' + samples_object(function.inlined);
  }
  return '{' + text + '}';
}

std::string op_object(const joined_op& op, const joined_run& run) {
  const auto ns = cpu_ns(op, run);
  return "{\"samples\":" + std::to_string(op.total.samples) +
         ",\"cpu_ns\":" + (ns ? std::to_string(*ns) : "null") +
         ",\"share\":" + json_number(op.total.share_of(run.total())) +
         ",\"functions\":" + samples_object(op.functions) + ",\"inlined\":" + inlined_object(op) +
         ",\"counters\":" + counts_object(op.counters, [](std::uint64_t sum) { return sum; }) + '}';
}

void print_json(const joined_run& run, std::ostream& out) {
  std::string_view before;
  out << "{\"event\":" << json_string(run.event) << ",\"ops\":{";
  for (const auto& [name, op] : run.ops) {
    out << before << '\n' << json_string(name) << ':' << op_object(op, run);
    before = ",";
  }
  out << "},\n\"outside\":" << op_object(run.outside, run) << "}\n";
}

void print_csv(const joined_run& run, std::ostream& out) {
  out << "op,function,module,samples\n";
  const auto rows = [&out](const std::string& name, const joined_op& op) {
    for (const auto& [key, of] : by_value(op.functions)) {
      const std::size_t bar = key.rfind('|');
      out << csv_field(printable(name)) << ',' << csv_field(printable(key.substr(0, bar))) << ','
          << csv_field(printable(key.substr(bar + 1))) << ',' << of.total.samples << '\n';
    }
  };
  for (const auto& [name, op] : run.ops) rows(name, op);
  rows("", run.outside);
}

void inlined_rows(const joined_function& function, table& to) {
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const auto& [name, of] : by_value(function.inlined)) {
    if (shown++ == most) return;
    to.row({"  inlined: " + shortened(name), std::to_string(of.samples), ""});
  }
}

void print_tables(const joined_run& run, std::ostream& out) {
  constexpr std::size_t most_functions = 10;
  table summary;
  summary.row({"operation", "samples", "CPU time", "share"});
  const auto add = [&](const std::string& name, const joined_op& op) {
    const auto ns = cpu_ns(op, run);
    summary.row({name, std::to_string(op.total.samples),
                 ns ? human_time(static_cast<double>(*ns)) : "-",
                 human_share(op.total.share_of(run.total()))});
  };
  for (const auto& [name, op] : run.ops) add(name, op);
  add("(outside)", run.outside);
  summary.print(out);
  const auto functions = [&](const std::string& name, const joined_op& op) {
    if (op.total.samples == 0) return;
    out << '\n' << printable_line(name) << '\n';
    table rows;
    rows.row({"function|module", "samples", "share"});
    std::size_t shown = 0;
    for (const auto& [key, of] : by_value(op.functions)) {
      if (shown++ == most_functions) {
        rows.row({"... " + std::to_string(op.functions.size() - most_functions) + " more"});
        break;
      }
      rows.row({shortened(key), std::to_string(of.total.samples),
                human_share(of.total.share_of(op.total))});
      inlined_rows(of, rows);
    }
    rows.print(out);
  };
  for (const auto& [name, op] : run.ops) functions(name, op);
  functions("(outside)", run.outside);
}

}  // namespace

std::optional<std::uint64_t> cpu_ns(const joined_op& op, const joined_run& run) {
  if (!is_cpu_time(run.event)) return std::nullopt;
  return op.total.value;
}

void print_joined(const joined_run& run, print_as print, std::ostream& out) {
  if (print == print_as::json) return print_json(run, out);
  if (print == print_as::csv) return print_csv(run, out);
  print_tables(run, out);
}

}  // namespace lotus::tool
