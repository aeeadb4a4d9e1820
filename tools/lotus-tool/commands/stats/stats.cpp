#include "commands/stats/stats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/statistics/distribution.hpp"
#include "commands/stats/stats_csv.hpp"
#include "commands/stats/stats_json.hpp"
#include "commands/stats/stats_pipeline.hpp"
#include "commands/stats/stats_profile.hpp"
#include "commands/stats/stats_table.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "model/figures.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "verdict/check.hpp"
#include "verdict/recorded_work.hpp"

namespace lotus::tool {
namespace {

/// The share of values above 500 ms, for the quantities of which the Lotus paper reports it.
std::optional<double> share_above_500ms(quantity of, const std::vector<std::int64_t>& values) {
  if (of != quantity::wait && of != quantity::delay) return std::nullopt;
  return values.empty() ? 0 : 1 - share_below(values, 500'000'001);
}

void describe_batches(run_stats_result& result, const stats_options& options) {
  const run_batches& batches = result.run.batches;
  for (const quantity q : all_quantities) {
    std::vector<std::int64_t> values = values_of(batches, q, options.skip_batches);
    if (q == quantity::preprocess && options.remove_outliers) remove_low_outliers(values);
    figures& of = result.quantities.emplace_back();
    of.name = quantity_name(q);
    of.above_500ms = share_above_500ms(q, values);
    of.time = describe(values);
    of.cpu = cpu_of(result.run, q, options.skip_batches);
  }
  const std::vector<bool> counted = counted_batches(batches, options.skip_batches);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!counted[i]) continue;
    ++result.batch_count;
    if (batches.out_of_order(batches.all()[i])) ++result.out_of_order;
  }
}

/// Sorts operations, unless they keep the order of the logs, and cuts them to the limit.
template <class Op>
void sort_ops(std::vector<Op>& ops, const stats_options& options) {
  const stats_order order = options.order;
  const auto figure = [order](const figures& op) -> double {
    switch (order) {
      case stats_order::count:
        return static_cast<double>(op.time.count);
      case stats_order::mean:
        return op.time.mean_ns;
      case stats_order::p50:
        return op.time.p50_ns;
      case stats_order::p90:
        return op.time.p90_ns;
      case stats_order::p99:
        return op.time.p99_ns;
      case stats_order::max:
        return static_cast<double>(op.time.max_ns);
      case stats_order::total:
        return static_cast<double>(op.time.total_ns);
      case stats_order::self:
        return static_cast<double>(op.self_ns.value_or(0));
      case stats_order::logged:
      case stats_order::name:
        break;
    }
    return 0;
  };
  std::stable_sort(ops.begin(), ops.end(), [&](const figures& a, const figures& b) {
    return order == stats_order::name ? natural_less(a.name, b.name) : figure(a) > figure(b);
  });
  if (options.limit && *options.limit < ops.size()) {
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(*options.limit), ops.end());
  }
}

}  // namespace

run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostic_log& diagnostics) {
  run_stats_result result;
  result.run =
      read_run(run, {true, true, checked_parts.operations, options.group_by_args}, diagnostics);
  result.checks = failed_checks(result.run, look_at_work(result.run));
  for (op_samples& sampled : result.run.ops) {
    figures of = figures_of(sampled);
    // If calls are grouped by arguments and all had some, none is left for the plain name.
    if (of.time.count == 0) continue;
    result.ops.push_back({std::move(of), std::move(sampled.by_file)});
  }
  sort_ops(result.ops, options);
  result.aggregated = figures_of(result.run.aggregated);
  sort_ops(result.aggregated, options);
  describe_batches(result, options);
  collect_pipeline(result, options.slowest);
  for (run_data::log_operations& log : result.run.logs) log.packed = {};
  return result;
}

std::vector<operation_calls> run_stats_result::calls_of_operations() const {
  std::vector<operation_calls> calls;
  calls.reserve(ops.size());
  for (const op_stats& op : ops) calls.push_back({op.name, op.time.count});
  return calls;
}

worker_batches batches_of_worker(const run_stats_result& run, std::size_t file) {
  worker_batches preprocessed;
  for (const batch_record& r : run.run.batches.records()) {
    if (r.file != file_id(file) || r.kind != record_kind::preprocessed) continue;
    ++preprocessed.count;
    preprocessed.total_ns += r.duration_ns;
  }
  return preprocessed;
}

int run_stats(const stats_options& options, std::ostream& out, std::ostream& err) {
  if (options.form == stats_form::profile) return print_stats_profile(options, out, err);
  diagnostic_log diagnostics(err, options.quiet);
  std::vector<run_stats_result> results;
  std::deque<std::vector<run_files>> found;  // a deque, because the results refer to its elements
  for (const std::string& dir : options.dirs) {
    for (const run_files& run : found.emplace_back(find_runs(dir, options.prefix, diagnostics))) {
      run_stats_result result = collect_stats(run, options, diagnostics);
      if (result.run.empty() && result.aggregated.empty()) {
        diagnostics.warning(run.dir + ": ignored: its logs contain nothing usable");
        continue;
      }
      results.push_back(std::move(result));
    }
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (results.empty()) throw input_error("the logs contain nothing usable");
  switch (options.form) {
    case stats_form::json:
      print_stats_json(results, out);
      break;
    case stats_form::csv:
      print_stats_csv(results, out);
      break;
    case stats_form::profile:
    case stats_form::table:
      print_stats_table(results, options, out);
      break;
  }
  return exit_fine;
}

}  // namespace lotus::tool
