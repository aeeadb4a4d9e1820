#include "commands/report/report_hardware.hpp"

#include <algorithm>
#include <utility>

#include "base/diagnostics.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/counters.hpp"
#include "mapping/read/function_report.hpp"
#include "sampling/join/sample_join.hpp"
#include "sampling/read/located_samples.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_functions = 8;  ///< maximum number of functions listed for each operation
constexpr const char* outside = "(outside)";

using weighted_functions = std::vector<std::pair<std::string, double>>;

void write_op(json_writer& json, const std::string& name, weighted_functions functions) {
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  double total = 0;
  for (const auto& [key, value] : functions) total += value;
  const std::size_t listed = std::min(functions.size(), max_functions);
  json.begin_object().member("name", name).member("total", total).key("functions").begin_array();
  for (std::size_t i = 0; i < listed; ++i) {
    json.row(functions[i].first, functions[i].second);
  }
  json.end_array().member("more", functions.size() - listed).end_object();
}

/// Returns the JSON of one source of functions, which is a run's samples or a mapping. The callback
/// `ops` must write the elements of the array "ops".
/// @param of_run  whether the source is the samples of the run with this name.
template <class WriteOps>
std::string source_json(const std::string& name, bool of_run, const std::string& unit,
                        const std::string& note, WriteOps&& ops) {
  std::string text;
  json_writer json(text);
  json.begin_object().member("name", name).member("of_run", of_run);
  json.member("unit", unit).member("note", note);
  json.key("ops").begin_array();
  ops(json);
  json.end_array().end_object();
  return text;
}

void write_joined_op(json_writer& json, const std::string& name, const joined_op& op,
                     double scale) {
  if (op.total.samples == 0) return;
  weighted_functions functions;
  for (const auto& [key, of] : op.functions) {
    functions.emplace_back(key, static_cast<double>(of.total.value) * scale);
  }
  write_op(json, name, std::move(functions));
}

/// Whether a metric's values can be added in a stacked chart: sums can, shares can after conversion
/// to clockticks, ratios cannot.
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

void hardware_data::add_samples_of_run(const run_files& run, const std::string& title) {
  diagnostic_log silent = diagnostic_log::silenced();  // these messages were printed before
  const located_samples samples = samples_of_run(run.dir, silent);
  if (samples.samples.empty()) return;
  joined_run joined;
  join(run, samples, joined, silent);
  const auto scale_of = [](const std::string& event) { return is_cpu_time(event) ? 1e-9 : 1; };
  const auto add = [&](json_writer& json, const std::string& name, const joined_op& op) {
    write_joined_op(json, name, op, scale_of(joined.event));
    for (const auto& [event, value] : op.counters) {
      count(is_cpu_time(event) ? event + ", seconds" : event, title, name,
            static_cast<double>(value) * scale_of(event));
    }
  };
  functions_.push_back(source_json(title, true,
                                   is_cpu_time(joined.event) ? "CPU seconds" : joined.event,
                                   "Every sample counts for the innermost operation that its "
                                   "thread was in.",
                                   [&](json_writer& json) {
                                     for (const auto& [name, op] : joined.ops) add(json, name, op);
                                     add(json, outside, joined.outside);
                                   }));
}

void hardware_data::add_mapping(const attribution_inputs& options) {
  const mapping m = read_mapping(options.mapping);
  const bool weighed = m.has_shares();
  const auto write_ops = [&](json_writer& json) {
    for (const auto& [name, use] : m.ops) {
      weighted_functions functions;
      for (const auto& [key, function] : use.functions) {
        functions.emplace_back(key, weighed ? function.samples : 1);
      }
      write_op(json, name, std::move(functions));
    }
  };
  const std::string unit = !weighed ? "functions" : m.unit.empty() ? "samples" : m.unit;
  functions_.push_back(source_json(options.mapping, false, unit,
                                   weighed ? "Found by probes of single operations."
                                           : "This mapping has no shares, so every function counts "
                                             "the same.",
                                   write_ops));
  diagnostic_log silent = diagnostic_log::silenced();
  for (const attribution& a : attribute_all(options, silent)) {
    for (std::size_t i = 0; i < a.metrics.size(); ++i) {
      if (!stacks(a.metrics[i].kind)) continue;
      const std::string name = stacked_name(a.metrics[i]);
      for (const auto& [op, values] : a.ops) count(name, a.name, op, values[i]);
      count(name, a.name, outside, a.outside[i]);
    }
  }
}

void hardware_data::write(json_writer& json) const {
  json.begin_object().key("functions");
  json.list(functions_, [&](const std::string& source) { json.newline().raw(source); });
  json.key("counters").list(counters_, [&](const counter& c) {
    json.newline().begin_object().member("name", c.name).key("configs").list(c.configs);
    json.key("ops").list(c.ops, [&](const auto& op) {
      json.begin_object().member("name", op.first).key("values").list(op.second).end_object();
    });
    json.end_object();
  });
  json.end_object();
}

}  // namespace lotus::tool
