#include "stats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "distribution.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "run_model.hpp"
#include "samples.hpp"
#include "worker_time.hpp"

namespace lotus::tool {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;

void describe_batches(run_stats_result& result, const stats_options& options) {
  const auto values = [&](quantity wanted) {
    return values_of(result.batches, wanted, options.skip_batches);
  };
  std::vector<std::int64_t> preprocess = values(quantity::preprocess);
  std::vector<std::int64_t> wait = values(quantity::wait);
  std::vector<std::int64_t> delay = values(quantity::delay);
  std::vector<std::int64_t> step = values(quantity::step);
  if (options.remove_outliers) remove_low_outliers(preprocess);
  const auto share_above = [](const std::vector<std::int64_t>& of) {
    return of.empty() ? 0 : 1 - share_below(of, 500 * ms_ns + 1);
  };
  result.wait_above_500ms = share_above(wait);
  result.delay_above_500ms = share_above(delay);
  result.preprocess = describe(preprocess);
  result.wait = describe(wait);
  result.delay = describe(delay);
  result.step = describe(step);
  const std::vector<bool> counted = counted_batches(result.batches, options.skip_batches);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!counted[i]) continue;
    ++result.batch_count;
    if (result.batches.out_of_order(result.batches.all()[i])) ++result.out_of_order;
  }
}

void sort_ops(std::vector<op_stats>& ops, stats_order order) {
  const auto figure = [order](const op_stats& op) -> double {
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
        return static_cast<double>(op.self_ns);
      case stats_order::logged:
      case stats_order::name:
        break;
    }
    return 0;
  };
  std::stable_sort(ops.begin(), ops.end(), [&](const op_stats& a, const op_stats& b) {
    return order == stats_order::name ? natural_less(a.name, b.name) : figure(a) > figure(b);
  });
}

}  // namespace

run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostics& said) {
  run_samples samples = collect_samples(run, said);
  run_stats_result result;
  result.dir = samples.dir;
  for (op_samples& sampled : samples.ops) {
    op_stats op;
    op.name = std::move(sampled.name);
    op.below_10ms = share_below(sampled.durations_ns, 10 * ms_ns);
    op.below_100us = share_below(sampled.durations_ns, ms_ns / 10);
    op.time = describe(sampled.durations_ns);
    op.self_ns = sampled.self_ns;
    op.by_file = std::move(sampled.by_file);
    result.ops.push_back(std::move(op));
    std::vector<std::int64_t>().swap(sampled.durations_ns);
  }
  sort_ops(result.ops, options.order);
  if (options.limit && *options.limit < result.ops.size()) {
    result.ops.erase(result.ops.begin() + static_cast<std::ptrdiff_t>(*options.limit),
                     result.ops.end());
  }
  result.file_numbers = std::move(samples.file_numbers);
  result.batches = std::move(samples.batches);
  describe_batches(result, options);
  return result;
}

worker_batches batches_of_worker(const run_stats_result& run, std::size_t file) {
  worker_batches made;
  for (const batch_record& r : run.batches.records()) {
    if (r.file != file || r.kind != record_kind::preprocessed) continue;
    ++made.count;
    made.total_ns += r.duration_ns;
  }
  return made;
}

int run_stats(const stats_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  std::vector<run_stats_result> results;
  for (const std::string& dir : options.dirs) {
    for (const run_files& run : find_runs(dir, options.prefix, said)) {
      run_stats_result result = collect_stats(run, options, said);
      if (result.ops.empty() && result.batches.all().empty()) {
        said.warning(run.dir + ": nothing usable in its logs, left out");
        continue;
      }
      results.push_back(std::move(result));
    }
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (results.empty()) throw input_error("nothing usable in the logs");
  switch (options.form) {
    case stats_form::json:
      print_stats_json(results, out);
      break;
    case stats_form::csv:
      print_stats_csv(results, out);
      break;
    case stats_form::table:
      print_stats_table(results, options.per_worker, out);
      break;
  }
  return exit_fine;
}

}  // namespace lotus::tool
