#include "mapping/attribution.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "log/shown_name.hpp"
#include "mapping/read/function_report.hpp"
#include "mapping/read/table_text.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// The operations that use a function, each with the function's share of the operation's samples.
using users = std::map<std::string, double>;

/// Finds the operations that use a function. Tries the exact name of the function first, then
/// comparable_function().
class function_index {
 public:
  explicit function_index(const mapping& m) {
    for (const auto& [op, use] : m.ops) {
      for (const auto& [key, function] : use.functions) {
        const std::size_t bar = key.rfind('|');
        const std::string name = key.substr(0, bar);
        const std::string module = comparable_module(key.substr(bar + 1));
        add(exact_, name, module, op, function.share);
        add(normal_, comparable_function(name), module, op, function.share);
      }
    }
  }

  /// Returns the operations that use a function; nullopt if the mapping does not contain it.
  std::optional<users> find(const counted_function& counted) const {
    auto found = find_in(exact_, counted.function, counted.module);
    if (!found) found = find_in(normal_, comparable_function(counted.function), counted.module);
    return found;
  }

 private:
  using by_module = std::map<std::string, users>;
  using by_name = std::map<std::string, by_module>;

  static void add(by_name& to, const std::string& name, const std::string& module,
                  const std::string& op, double share) {
    to[name][module][op] += share;
  }

  static std::optional<users> find_in(const by_name& names, const std::string& name,
                                      const std::string& module) {
    const auto at = names.find(name);
    if (at == names.end()) return std::nullopt;
    const std::string wanted = comparable_module(module);
    users all = users_where(at->second, [&](const std::string& known) {
      // An unknown module, for example in a table copied from VTune's window, matches any other.
      return wanted.empty() || known.empty() || known == wanted;
    });
    // A mapping may come from a probe: a small program that executes the operations of the real
    // program. The two programs have different names, so any program matches any other program.
    if (all.empty() && is_program(wanted)) all = users_where(at->second, is_program);
    if (all.empty()) return std::nullopt;
    return all;
  }

  template <class Wanted>
  static users users_where(const by_module& modules, Wanted&& is_wanted) {
    users all;
    for (const auto& [known, ops] : modules) {
      if (!is_wanted(known)) continue;
      for (const auto& [op, share] : ops) all[op] += share;
    }
    return all;
  }

  by_name exact_;
  by_name normal_;
};

/// If several operations use a function, its counter values are split among them in proportion to
/// their weights. Returns the weight of the operation `op`: its time or, with weighting::mix, its
/// time multiplied by `share`, the function's share of the operation's samples.
double claim(const elapsed_by_op& elapsed, const std::string& op, double share, weighting weights) {
  const auto time = elapsed.find(op);
  const double total = time == elapsed.end() ? 0 : time->second;
  return weights == weighting::mix ? total * share : total;
}

/// Adds a function's counter values, multiplied by `weight`, to the values in `to`. A share of
/// clockticks is first converted to a number of clockticks, because shares cannot be added.
void add_weighted(const counter_table& counters, const counted_function& counted, double weight,
                  std::vector<double>& to) {
  const auto clockticks = counters.find("Clockticks");
  to.resize(counters.metrics.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool share = counters.metrics[i].kind == metric_kind::share && clockticks;
    to[i] += weight * counted.values[i] * (share ? counted.values[*clockticks] / 100 : 1);
  }
}

using elapsed_by_config = std::map<std::string, elapsed_by_op>;

/// Reads a table with the header "config,op,op,…" and one row for each configuration.
elapsed_by_config read_elapsed(const std::string& path) {
  const std::string text = read_text(path);
  text_lines lines(text);
  std::string_view line;
  std::optional<table_head> head;
  elapsed_by_config configs;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    const std::vector<std::string> fields = split_fields(line, ',');
    if (!head) {
      head.emplace(fields);
      if (fields.size() < 2) {
        throw input_error(at_line(path, lines.number(), "expected config,operation,operation,…"));
      }
      continue;
    }
    if (fields.size() != head->names().size()) {
      throw input_error(
          at_line(path, lines.number(),
                  "the number of fields differs from the number of columns in the header"));
    }
    for (std::size_t c = 1; c < fields.size(); ++c) {
      const auto seconds = number_in(fields[c]);
      if (!seconds || *seconds < 0) {
        throw input_error(
            at_line(path, lines.number(), "'" + fields[c] + "' is not a number of seconds"));
      }
      configs[fields[0]][head->names()[c]] = *seconds;
    }
  }
  if (configs.empty()) throw input_error(path + ": contains no rows");
  return configs;
}

void add_elapsed(const std::string& dir, std::string_view prefix, elapsed_by_config& configs,
                 diagnostic_log& diagnostics) {
  for (const run_files& run : find_runs(dir, prefix, diagnostics)) {
    const std::string config = run.dir.substr(run.dir.find_last_of('/') + 1);
    const run_data data = read_run(run, {true, false, false}, diagnostics);
    for (const op_samples& op : data.ops) {
      configs[config][shown_name(op.name)] += static_cast<double>(op.by_file.total_ns()) * 1e-9;
    }
  }
}

/// Returns the digits at the end of a configuration's name: "b1024_gpu4_dataloader20" and "20" are
/// names of the same configuration.
std::string_view number_at_end(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  return last == std::string_view::npos ? text : text.substr(last + 1);
}

const elapsed_by_op& of_config(const elapsed_by_config& configs, const std::string& name) {
  const auto exact = configs.find(name);
  if (exact != configs.end()) return exact->second;
  if (configs.size() == 1) return configs.begin()->second;
  const elapsed_by_op* found = nullptr;
  const std::string_view number = number_at_end(name);
  for (const auto& [config, elapsed] : configs) {
    if (number.empty() || number_at_end(config) != number) continue;
    if (found != nullptr) throw input_error(name + ": two configurations end in the same number");
    found = &elapsed;
  }
  if (found == nullptr) {
    throw input_error(name +
                      ": no elapsed times for this configuration; its name or the number at "
                      "its end must be one of theirs");
  }
  return *found;
}

}  // namespace

attribution attribute(const counter_table& counters, const mapping& m, const elapsed_by_op& elapsed,
                      weighting weights) {
  attribution result;
  result.name = counters.name;
  result.metrics = counters.metrics;
  result.outside.resize(counters.metrics.size());
  users everyone;
  for (const auto& [op, use] : m.ops) {
    result.ops[op].resize(counters.metrics.size());
    everyone[op] = 1;
  }
  const function_index index(m);
  for (const counted_function& counted : counters.functions) {
    const auto found =
        counters.whole_process ? std::optional<users>(everyone) : index.find(counted);
    double sum = 0;
    if (found) {
      for (const auto& [op, share] : *found) sum += claim(elapsed, op, share, weights);
    }
    // If the function is unknown, or the operations that use it took no time, add its counter
    // values to those outside of all operations.
    if (sum <= 0) {
      add_weighted(counters, counted, 1, result.outside);
      continue;
    }
    for (const auto& [op, share] : *found) {
      add_weighted(counters, counted, claim(elapsed, op, share, weights) / sum, result.ops[op]);
    }
  }
  return result;
}

double metric_value(const attribution& a, const std::vector<double>& values, std::size_t index) {
  const auto value_of = [&](std::string_view name) {
    for (std::size_t i = 0; i < a.metrics.size(); ++i) {
      if (a.metrics[i].name == name) return values[i];
    }
    return 0.0;
  };
  const auto ratio = [](double a_value, double b_value) {
    return b_value > 0 ? a_value / b_value : 0;
  };
  const double clockticks = value_of("Clockticks");
  switch (a.metrics[index].kind) {
    case metric_kind::share:
      return clockticks > 0 ? 100 * values[index] / clockticks : values[index];
    case metric_kind::cpi:
      return ratio(clockticks, value_of("Instructions Retired"));
    case metric_kind::frequency:
      return ratio(clockticks, value_of("CPU Time")) * 1e-9;
    case metric_kind::sum:
      break;
  }
  return values[index];
}

namespace {

/// Warns about operations to which no counter values were attributed. If such an operation took
/// time, the mapping was probably made from other code.
void warn_of_unsampled_operations(const attribution& a, const elapsed_by_op& elapsed,
                                  const std::string& path, diagnostic_log& diagnostics) {
  for (const auto& [op, values] : a.ops) {
    const bool nothing =
        std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
    const auto time = elapsed.find(op);
    if (nothing && (time == elapsed.end() || time->second == 0)) {
      diagnostics.warning(path + ": " + printable(op) +
                          " took no time in the run, so no counters are attributed to it");
      continue;
    }
    if (nothing) diagnostics.warning(path + ": no function of " + printable(op) + " is in it");
  }
}

}  // namespace

std::vector<attribution> attribute_all(const attribution_inputs& inputs,
                                       diagnostic_log& diagnostics) {
  const mapping m = read_mapping(inputs.mapping);
  if (inputs.weights == weighting::mix && !m.has_shares()) {
    throw input_error(inputs.mapping +
                      ": has no shares of functions inside operations, which --weights mix needs; "
                      "make it with 'lotus-tool map build' or take --weights elapsed");
  }
  elapsed_by_config configs;
  if (!inputs.elapsed.empty()) configs = read_elapsed(inputs.elapsed);
  for (const std::string& dir : inputs.traces)
    add_elapsed(dir, inputs.prefix, configs, diagnostics);
  std::vector<attribution> all;
  for (const std::string& path : inputs.counters) {
    const counter_table counters = read_counters(path);
    const elapsed_by_op elapsed = of_config(configs, counters.name);
    all.push_back(attribute(counters, m, elapsed, inputs.weights));
    if (!counters.whole_process)
      warn_of_unsampled_operations(all.back(), elapsed, path, diagnostics);
  }
  return all;
}

}  // namespace lotus::tool
