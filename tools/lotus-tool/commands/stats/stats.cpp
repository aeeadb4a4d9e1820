#include "commands/stats/stats.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

#include "accelerator/ranks.hpp"
#include "base/errors.hpp"
#include "base/formats/csv.hpp"
#include "base/statistics/distribution.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "findings/checks/recorded_work.hpp"
#include "log/log_line.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

/// Returns the share of values above 500 ms, which the Lotus paper reports for waits and delays;
/// nullopt for other quantities.
std::optional<double> share_above_500ms(quantity of, const std::vector<std::int64_t>& values) {
  if (of != quantity::wait && of != quantity::delay) return std::nullopt;
  return values.empty() ? 0 : 1 - share_below(values, 500'000'001);
}

void describe_quantities(run_stats_result& result, const stats_options& options) {
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

const field* sorting_figure(std::string_view title) {
  const std::vector<const field*> all = figure_columns(sorting, true);
  const auto at = std::find_if(all.begin(), all.end(),
                               [title](const field* one) { return one->shown.title == title; });
  return at == all.end() ? nullptr : *at;
}

double number_of(const datum& value) {
  const auto* const whole = std::get_if<std::int64_t>(&value);
  if (whole != nullptr) return static_cast<double>(*whole);
  const auto* const real = std::get_if<double>(&value);
  return real == nullptr ? 0 : *real;
}

/// Sorts the indexes of operations and shortens the list to the limit. With the order "logged",
/// the order of the logs is kept.
/// @param ops  the operations, as op_samples or as figures.
template <class Ops>
void sort_ops(std::vector<std::uint32_t>& indexes, const Ops& ops, const stats_options& options) {
  if (options.order == "name") {
    std::stable_sort(indexes.begin(), indexes.end(), [&](std::uint32_t a, std::uint32_t b) {
      return natural_less(ops[a].name, ops[b].name);
    });
  } else if (options.order != "logged") {
    std::vector<double> by(ops.size());
    const field& figure = *sorting_figure(options.order);
    for (const std::uint32_t index : indexes) {
      const figures of = figures_of(ops[index]);
      by[index] = number_of(figure.value(&of));
    }
    std::stable_sort(indexes.begin(), indexes.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return by[a] > by[b]; });
  }
  if (options.limit && *options.limit < indexes.size()) indexes.resize(*options.limit);
}

/// Collects the statistics of `run`, which must outlive the result. Throws input_error.
run_stats_result collect_stats(const run_files& run, const stats_options& options,
                               diagnostic_log& diagnostics) {
  run_stats_result result;
  result.run = read_run_and_waits(
      run, {true, true, checked_parts.operations, options.group_by_args}, diagnostics);
  result.checks = failed_checks(result.run, look_at_work(result.run));
  for (std::uint32_t index = 0; index < result.run.ops.size(); ++index) {
    // A name without calls is not shown. With --group-by-args, calls with arguments belong to names
    // that contain the arguments, so no call may be left for the plain name of the operation.
    if (result.run.ops[index].durations.size() > 0) result.shown_ops.push_back(index);
  }
  const std::size_t all = result.shown_ops.size();
  stats_options shown = options;
  constexpr std::size_t too_many = 100;  // for readers of a table
  const bool chosen = options.limit || options.order != "logged";
  if (options.form == stats_form::table && !chosen && all > too_many) {
    shown.order = "self";
    shown.limit = too_many / 2;
  }
  sort_ops(result.shown_ops, result.run.ops, shown);
  if (!chosen) result.ops_left_out = all - result.shown_ops.size();
  std::vector<std::uint32_t> indexes(result.run.aggregated.size());
  std::iota(indexes.begin(), indexes.end(), 0U);
  sort_ops(indexes, result.run.aggregated, options);
  for (const std::uint32_t index : indexes) {
    result.aggregated.push_back(figures_of(result.run.aggregated[index]));
  }
  describe_quantities(result, options);
  result.stages = describe_stages(result.run);
  result.items = describe_items(result.run, options.slowest.value_or(3));
  result.async = describe_async(result.run);
  result.counters = counters_of(result.run);
  result.blocked_on = join_waits(result.run, diagnostics);
  name_locks(run, result.blocked_on, diagnostics);
  if (options.form == stats_form::json) name_stacks(run, result.blocked_on, diagnostics);
  result.threads = threads_at_snapshot(result.run, diagnostics);
  result.accelerators = find_accelerators(result.run, diagnostics);
  for (run_data::log_operations& log : result.run.logs) log.packed = {};
  return result;
}

}  // namespace

std::vector<operation_calls> run_stats_result::calls_of_operations() const {
  std::vector<operation_calls> calls;
  calls.reserve(shown_ops.size());
  for (const std::uint32_t index : shown_ops) {
    calls.push_back({std::string(run.ops[index].name), run.ops[index].durations.size()});
  }
  return calls;
}

std::vector<std::string> stats_orders() {
  std::vector<std::string> words{"logged", "name"};
  for (const field* one : figure_columns(sorting, true)) words.emplace_back(one->shown.title);
  return words;
}

worker_share batches_of_worker(const run_stats_result& run, std::size_t file) {
  worker_share preprocessed;
  for (const batch_record& r : run.run.batches.records()) {
    if (r.file != file_id(file) || r.kind != record_kind::preprocessed) continue;
    ++preprocessed.count;
    preprocessed.total_ns += r.duration_ns;
    preprocessed.max_ns = std::max(preprocessed.max_ns, r.duration_ns);
  }
  return preprocessed;
}

int run_stats(const stats_options& options, std::ostream& out, std::ostream& err) {
  if (options.form == stats_form::profile) return print_stats_profile(options, out, err);
  diagnostic_log diagnostics(err, options.quiet);
  stats_output output;
  std::vector<run_stats_result>& results = output.runs;
  std::deque<std::vector<run_files>> found;  // a deque, because the results refer to its elements
  for (const std::string& dir : options.dirs) {
    for (const run_files& run : found.emplace_back(find_runs(dir, options.prefix, diagnostics))) {
      run_stats_result result = collect_stats(run, options, diagnostics);
      if (result.run.empty() && result.aggregated.empty() && result.threads.empty()) {
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
      print_json(output, out);
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

std::vector<const field*> figure_columns(figure_output output, bool cpu) {
  std::vector<const field*> columns =
      columns_of(description_of(static_cast<const figures*>(nullptr)), output);
  const auto is_hidden = [cpu](const field* one) { return !cpu && (one->outputs & of_cpu) != 0; };
  columns.erase(std::remove_if(columns.begin(), columns.end(), is_hidden), columns.end());
  return columns;
}

namespace {

bool knows_cpu(const run_stats_result& run) {
  return std::any_of(
             run.shown_ops.begin(), run.shown_ops.end(),
             [&run](std::uint32_t op) { return run.run.ops[op].details().cpu.has_value(); }) ||
         std::any_of(run.quantities.begin(), run.quantities.end(),
                     [](const figures& of) { return of.cpu.has_value(); });
}

/// Prints the statistics of one operation or quantity as a row.
void print_row(std::ostream& out, const std::string& run, std::string_view kind, const figures& of,
               const std::vector<const field*>& columns) {
  out << run << ',' << kind << ',' << csv_field(of.name);
  for (const field* one : columns) out << ',' << exact_text(one->value(&of));
  out << '\n';
}

}  // namespace

void print_stats_csv(const std::vector<run_stats_result>& runs, std::ostream& out) {
  const std::vector<const field*> columns =
      figure_columns(stats_csv, std::any_of(runs.begin(), runs.end(), knows_cpu));
  out << "run,kind,name";
  for (const field* one : columns) out << ',' << one->key;
  out << '\n';
  for (const run_stats_result& run : runs) {
    const std::string dir = csv_field(run.run.files->dir);
    for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
      print_row(out, dir, "op", figures_of(run.op(i)), columns);
    }
    for (const figures& of : run.aggregated) print_row(out, dir, "aggregated", of, columns);
    for (const figures& of : run.quantities) print_row(out, dir, "batch", of, columns);
    for (const stage_stats& stage : run.stages) print_row(out, dir, "stage", stage, columns);
    for (const item_stats& of : run.items) print_row(out, dir, "item", of, columns);
    for (const async_stats& of : run.async) print_row(out, dir, "async", of, columns);
  }
}

}  // namespace lotus::tool
