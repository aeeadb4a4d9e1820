#include "report_hardware.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "map/attribute.hpp"
#include "map/counters.hpp"
#include "map/event_names.hpp"
#include "map/join.hpp"
#include "map/located_samples.hpp"
#include "map/mapping.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t most_functions = 8;  ///< of an operation, listed
constexpr const char* outside = "(outside)";

using weighted_functions = std::vector<std::pair<std::string, double>>;

std::string op_json(const std::string& name, weighted_functions functions) {
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  double total = 0;
  std::string listed;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    total += functions[i].second;
    if (i >= most_functions) continue;
    listed += (i == 0 ? "[" : ",[") + json_string(functions[i].first) + ',' +
              json_number(functions[i].second) + ']';
  }
  const std::size_t more = functions.size() - std::min(functions.size(), most_functions);
  return "{\"name\":" + json_string(name) + ",\"total\":" + json_number(total) +
         ",\"functions\":[" + listed + "],\"more\":" + std::to_string(more) + '}';
}

std::string source_json(const std::string& name, const std::string& unit, const std::string& note,
                        const std::string& ops) {
  return "\n{\"name\":" + json_string(name) + ",\"unit\":" + json_string(unit) +
         ",\"note\":" + json_string(note) + ",\"ops\":[" + ops + "]}";
}

/// One more element of a JSON array.
void append(std::string& to, const std::string& element) {
  to += (to.empty() ? "" : ",") + element;
}

std::string joined_op_json(const std::string& name, const joined_op& op, double scale) {
  weighted_functions functions;
  for (const auto& [key, of] : op.functions) {
    functions.emplace_back(key, static_cast<double>(of.total.value) * scale);
  }
  return op_json(name, std::move(functions));
}

/// What stacks: sums as they are, and shares of clockticks as clockticks. Ratios do not.
bool stacks(metric_kind kind) {
  return kind == metric_kind::sum || kind == metric_kind::share;
}

std::string stacked_name(const metric& m) {
  return m.kind == metric_kind::share ? m.name + ", clockticks" : m.name;
}

}  // namespace

void hardware_data::count(const std::string& counter_name, const std::string& config,
                          const std::string& op, double value) {
  auto at = std::find_if(counters_.begin(), counters_.end(),
                         [&](const counter& c) { return c.name == counter_name; });
  if (at == counters_.end()) at = counters_.insert(at, counter{counter_name, {}, {}});
  counter& to = *at;
  if (to.configs.empty() || to.configs.back() != config) to.configs.push_back(config);
  std::vector<double>& values = to.ops[op];
  values.resize(to.configs.size());
  values.back() += value;
}

void hardware_data::add_samples_beside(const run_files& run, const std::string& title) {
  diagnostics silent = diagnostics::silenced();  // what is odd about the logs was said
  const located_samples samples = samples_beside(run.dir, silent);
  if (samples.samples.empty()) return;
  joined_run joined;
  join(run, samples, joined, silent);
  std::string ops;
  const auto scale_of = [](const std::string& event) { return is_cpu_time(event) ? 1e-9 : 1; };
  const auto add = [&](const std::string& name, const joined_op& op) {
    append(ops, joined_op_json(name, op, scale_of(joined.event)));
    for (const auto& [event, value] : op.counters) {
      count(is_cpu_time(event) ? event + ", seconds" : event, title, name,
            static_cast<double>(value) * scale_of(event));
    }
  };
  for (const auto& [name, op] : joined.ops) add(name, op);
  add(outside, joined.outside);
  append(functions_,
         source_json(title, is_cpu_time(joined.event) ? "CPU seconds" : joined.event,
                     "Every sample of the run belongs to the innermost operation that was open "
                     "then on its thread.",
                     ops));
}

void hardware_data::add_mapping(const map_attribute_options& options) {
  const mapping m = read_mapping(options.mapping);
  const bool weighed = m.has_shares();
  std::string ops;
  for (const auto& [name, use] : m.ops) {
    weighted_functions functions;
    for (const auto& [key, function] : use.functions) {
      functions.emplace_back(key, weighed ? function.samples : 1);
    }
    append(ops, op_json(name, std::move(functions)));
  }
  const std::string unit = !weighed ? "functions" : m.unit.empty() ? "samples" : m.unit;
  append(functions_, source_json(options.mapping, unit,
                                 weighed ? "From probes of single operations."
                                         : "This mapping tells no shares: every function counts "
                                           "alike.",
                                 ops));
  diagnostics silent = diagnostics::silenced();
  for (const attribution& a : attribute_all(options, silent)) {
    for (std::size_t i = 0; i < a.metrics.size(); ++i) {
      if (!stacks(a.metrics[i].kind)) continue;
      const std::string name = stacked_name(a.metrics[i]);
      for (const auto& [op, values] : a.ops) count(name, a.name, op, values[i]);
      count(name, a.name, outside, a.outside[i]);
    }
  }
}

std::string hardware_data::counter_json(const counter& c) {
  std::string configs;
  for (const std::string& config : c.configs) append(configs, json_string(config));
  std::string ops;
  for (const auto& [op, values] : c.ops) {
    std::string numbers;
    for (const double value : values) append(numbers, json_number(value));
    append(ops, "{\"name\":" + json_string(op));
    ops += ",\"values\":[" + numbers + "]}";
  }
  return "\n{\"name\":" + json_string(c.name) + ",\"configs\":[" + configs + "],\"ops\":[" + ops +
         "]}";
}

std::string hardware_data::json() const {
  std::string counters;
  for (const counter& c : counters_) append(counters, counter_json(c));
  return "{\"functions\":[" + functions_ + "],\"counters\":[" + counters + "]}";
}

}  // namespace lotus::tool
