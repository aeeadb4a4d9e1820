#include "compare.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bootstrap.hpp"
#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "samples.hpp"
#include "table.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

/// Durations of several runs taken together, in order of first appearance.
struct pooled {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::int64_t>> ops;
  std::map<quantity, std::vector<std::int64_t>> quantities;
};

constexpr std::pair<quantity, const char*> all_quantities[] = {{quantity::preprocess, "preprocess"},
                                                               {quantity::wait, "wait"},
                                                               {quantity::delay, "delay"},
                                                               {quantity::step, "step"}};

template <class Value>
void append(std::vector<Value>& to, const std::vector<Value>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

pooled pool(const std::string& dir, const compare_options& options, diagnostics& said) {
  pooled all;
  for (const run_files& run : find_runs(dir, options.prefix, said)) {
    const run_samples samples = collect_samples(run, said);
    for (const op_samples& op : samples.ops) {
      std::vector<std::int64_t>& durations = all.ops[op.name];
      if (durations.empty()) all.names.push_back(op.name);
      append(durations, op.durations_ns);
    }
    for (const auto& [wanted, name] : all_quantities) {
      append(all.quantities[wanted], values_of(samples.batches, wanted, options.skip_batches));
    }
  }
  return all;
}

/// Drawing from fewer than this says little about how much a mean varies.
constexpr std::size_t least_values = 5;

struct row {
  const char* kind;
  std::string name;
  std::size_t count_before = 0;
  std::size_t count_after = 0;
  std::optional<double> before_ns;  ///< mean
  std::optional<double> after_ns;
  /// Of the mean; missing when a side is, or nothing was spent before.
  std::optional<double> grown_by;
  std::optional<change> likely;  ///< its 95 % interval; missing also where a side is small
  bool counts = true;            ///< may make the comparison fail

  bool common() const noexcept { return before_ns && after_ns; }
  bool enough() const noexcept {
    return count_before >= least_values && count_after >= least_values;
  }
};

std::optional<double> mean_of(const std::vector<std::int64_t>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

row compare_values(const char* kind, const std::string& name,
                   const std::vector<std::int64_t>& before,
                   const std::vector<std::int64_t>& after) {
  row r{kind, name, before.size(), after.size(), mean_of(before), mean_of(after), {}, {}, true};
  if (!r.common() || *r.before_ns == 0) return r;
  r.grown_by = *r.after_ns / *r.before_ns - 1;
  if (r.enough()) r.likely = bootstrap_change(before, after);
  return r;
}

std::vector<row> compare_all(pooled& before, pooled& after) {
  std::vector<std::string> names = before.names;
  for (const std::string& name : after.names) {
    if (before.ops.count(name) == 0) names.push_back(name);
  }
  std::vector<row> rows;
  rows.reserve(names.size() + std::size(all_quantities));
  for (const std::string& name : names) {
    rows.push_back(compare_values("op", name, before.ops[name], after.ops[name]));
  }
  for (const auto& [wanted, name] : all_quantities) {
    rows.push_back(
        compare_values("batch", name, before.quantities[wanted], after.quantities[wanted]));
    rows.back().counts = wanted != quantity::delay;
  }
  return rows;
}

bool is_slower(const row& r, double allowed) {
  if (r.counts && r.enough() && *r.before_ns == 0 && *r.after_ns > 0) return true;
  return r.counts && r.likely && *r.grown_by > allowed && r.likely->low > 0;
}

std::string signed_share(double share) {
  return (share > 0 ? "+" : "") + human_share(share);
}

void print_table(const std::vector<row>& rows, std::optional<double> allowed, std::ostream& out) {
  const auto time = [](std::optional<double> ns) {
    return ns ? human_time(*ns) : std::string("-");
  };
  table text;
  text.row({"mean of", "count", "count", "before", "after", "change", "95 % interval", ""});
  for (const row& r : rows) {
    std::vector<std::string> cells{r.name, std::to_string(r.count_before),
                                   std::to_string(r.count_after), time(r.before_ns),
                                   time(r.after_ns)};
    if (r.common()) {
      cells.push_back(r.grown_by ? signed_share(*r.grown_by) : "");
      cells.push_back(r.likely ? signed_share(r.likely->low) + " .. " + signed_share(r.likely->high)
                               : "");
      cells.emplace_back(allowed && is_slower(r, *allowed) ? "SLOWER" : "");
    }
    text.row(std::move(cells));
  }
  text.print(out);
}

void print_json(const compare_options& options, const std::vector<row>& rows, std::ostream& out) {
  const auto number = [](std::optional<double> value) {
    return value ? json_number(*value) : std::string("null");
  };
  out << R"({"before":)" << json_string(options.before) << R"(,"after":)"
      << json_string(options.after) << R"(,"rows":[)";
  std::string_view separator = "\n";
  std::string slower;
  for (const row& r : rows) {
    out << separator << R"({"kind":")" << r.kind << R"(","name":)" << json_string(r.name)
        << R"(,"before":{"count":)" << r.count_before << R"(,"mean_ns":)" << number(r.before_ns)
        << R"(},"after":{"count":)" << r.count_after << R"(,"mean_ns":)" << number(r.after_ns)
        << R"(},"change":)" << number(r.grown_by) << R"(,"low":)"
        << (r.likely ? json_number(r.likely->low) : "null") << R"(,"high":)"
        << (r.likely ? json_number(r.likely->high) : "null") << '}';
    separator = ",\n";
    if (options.fail_above && is_slower(r, *options.fail_above)) {
      slower += (slower.empty() ? "" : ",") + json_string(r.name);
    }
  }
  out << "\n],\"slower\":[" << slower << "]}\n";
}

}  // namespace

double parse_share(const std::string& text, const std::string& option) {
  std::string_view number = text;
  double unit = 1;
  if (!number.empty() && number.back() == '%') {
    number.remove_suffix(1);
    while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
    unit = 0.01;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  // A bare 5 would be 500 %, which nobody means.
  const bool bare_per_cent = unit == 1 && value >= 1;
  if (error != std::errc{} || end != number.data() + number.size() || !(value >= 0) ||
      bare_per_cent) {
    throw usage_error(option + ": '" + text + "' is no share; write 5% or 0.05");
  }
  return value * unit;
}

int run_compare(const compare_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  pooled before = pool(options.before, options, said);
  pooled after = pool(options.after, options, said);
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  const std::vector<row> rows = compare_all(before, after);
  std::size_t compared = 0;
  bool slower = false;
  for (const row& r : rows) {
    compared += r.common() ? 1U : 0U;
    slower = slower || (options.fail_above && is_slower(r, *options.fail_above));
  }
  if (compared == 0) {
    throw input_error(options.before + " and " + options.after + " have nothing in common");
  }
  if (options.json) {
    print_json(options, rows, out);
  } else {
    print_table(rows, options.fail_above, out);
  }
  return slower ? exit_slower : exit_fine;
}

}  // namespace lotus::tool
