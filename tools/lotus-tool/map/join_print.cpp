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

/// The largest first.
std::vector<std::pair<std::string, joined_samples>> by_value(
    const std::map<std::string, joined_samples>& functions) {
  std::vector<std::pair<std::string, joined_samples>> sorted(functions.begin(), functions.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.value > b.second.value; });
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

std::string op_object(const joined_op& op, const joined_run& run) {
  const auto ns = cpu_ns(op, run);
  return "{\"samples\":" + std::to_string(op.total.samples) +
         ",\"cpu_ns\":" + (ns ? std::to_string(*ns) : "null") +
         ",\"share\":" + json_number(op.total.share_of(run.total())) + ",\"functions\":" +
         counts_object(by_value(op.functions), [](const auto& of) { return of.samples; }) +
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
          << csv_field(printable(key.substr(bar + 1))) << ',' << of.samples << '\n';
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
      rows.row({shortened(key), std::to_string(of.samples), human_share(of.share_of(op.total))});
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
