#include "commands/stats/stats_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/ranks_text.hpp"
#include "base/printable.hpp"
#include "base/statistics/distribution.hpp"
#include "base/terminal/labels.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "commands/stats/stats.hpp"
#include "commands/stats/stats_pipeline.hpp"
#include "findings/check.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/shown_name.hpp"
#include "model/figures.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

/// Prints a table with `count` rows of statistics. If a row has no values, prints only its count of
/// 0.
/// @param cpu  whether CPU time was measured.
/// @param of   returns the figures of the row with a given index; called several times per row.
template <class Figures>
void print_figures(const std::string& head, std::size_t count, bool cpu, const Figures& of,
                   unsigned figure_field::*column, std::ostream& out) {
  const std::vector<const figure_field*> columns = columns_of(column, cpu);
  table lines;
  lines.spare({"% under 100 us", "iqr", "p25", "min", "% under 10 ms", "std/mean", "p75", "p90",
               "std", "waits for CPU", "% over 500 ms", "p50", "max", "p99"});
  std::vector<std::string> line{head};
  for (const figure_field* field : columns) line.emplace_back(field->title);
  lines.row(line);
  lines.more_rows(count, [&](std::size_t i) {
    const figures& f = of(i);
    std::vector<std::string> cells;
    cells.reserve(columns.size() + 1);
    cells.push_back(column == &figure_field::op_column ? shown_name(f.name)
                                                       : quantity_title(f.name));
    for (const figure_field* field : columns) {
      cells.push_back(human_text(*field, f));
      if (f.time.count == 0) break;
    }
    return cells;
  });
  lines.print(out);
}

void print_figures(const std::string& head, const std::vector<figures>& rows,
                   unsigned figure_field::*column, std::ostream& out) {
  const bool cpu =
      std::any_of(rows.begin(), rows.end(), [](const figures& of) { return of.cpu.has_value(); });
  const auto at = [&rows](std::size_t i) -> const figures& { return rows[i]; };
  print_figures(head, rows.size(), cpu, at, column, out);
}

void print_ops(const run_stats_result& run, std::ostream& out) {
  const bool cpu =
      std::any_of(run.shown_ops.begin(), run.shown_ops.end(),
                  [&run](std::uint32_t op) { return run.run.ops[op].details().cpu.has_value(); });
  const auto at = [&run](std::size_t i) { return figures_of(run.op(i)); };
  print_figures("operation", run.shown_ops.size(), cpu, at, &figure_field::op_column, out);
}

/// @param with_meanings  whether to explain the rows "delivery delay" and "consumer's step".
void print_batches(const run_stats_result& run, bool with_meanings, std::ostream& out) {
  std::vector<figures> quantities = run.quantities;
  // If stages build the batches, no thread builds a whole batch. Then the row of the preprocess
  // times would be empty, so it is left out.
  if (!run.stages.empty() && run.of(quantity::preprocess).time.count == 0) {
    quantities.erase(quantities.begin() + static_cast<std::ptrdiff_t>(quantity::preprocess));
  }
  print_figures("batch times", quantities, &figure_field::quantity_column, out);
  for (const figures& of : quantities) note_label(out, quantity_title(of.name));
  note_label(out, "consumer");
  out << "  batches that arrived out of order: " << run.out_of_order << " of " << run.batch_count
      << '\n';
  if (!with_meanings || run.of(quantity::delay).time.count == 0) return;
  // The steps are explained too, because they are fewer than the batches.
  out << "  delivery delay: from when a batch is ready until the consumer receives it\n"
         "  consumer's step: from receiving a batch to the next wait (last batch: unknown)\n";
}

/// Prints a row for every pair of a worker and an operation.
void print_workers(const run_stats_result& run, std::ostream& out) {
  table workers;
  workers.row({"worker", "operation", "count", "mean", "max", "total"});
  for (std::size_t f = 0; f < run.run.files->files.size(); ++f) {
    const std::string number = "worker " + std::to_string(run.run.files->files[f].number);
    const worker_batches preprocessed = batches_of_worker(run, f);
    const auto mean = [](std::int64_t total_ns, std::uint64_t count) {
      return human_time(static_cast<double>(total_ns) / static_cast<double>(count));
    };
    if (preprocessed.count > 0) {
      workers.row({number, "(preprocess)", std::to_string(preprocessed.count),
                   mean(preprocessed.total_ns, preprocessed.count),
                   human_time(static_cast<double>(preprocessed.max_ns)),
                   human_time(static_cast<double>(preprocessed.total_ns))});
    }
    for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
      const op_samples& op = run.op(i);
      if (f >= op.by_file.size() || op.by_file[f].count == 0) continue;
      const worker_share& share = op.by_file[f];
      workers.row({number, shown_name(op.name), std::to_string(share.count),
                   mean(share.total_ns, share.count), human_time(static_cast<double>(share.max_ns)),
                   human_time(static_cast<double>(share.total_ns))});
    }
  }
  out << '\n';
  workers.print(out);
}

/// For operations that are blocked for more than a tenth of their time, prints the reasons.
void print_blocked_on(const run_stats_result& run, std::ostream& out) {
  constexpr double min_share = 0.1;
  for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
    if (run.blocked_on.of(run.op(i).name) == nullptr) continue;
    const figures op = figures_of(run.op(i));
    const std::string text =
        waiting_text(run.blocked_on, shown_name(op.name),
                     op.cpu ? op.cpu->blocked_ns : std::nullopt, op.time.total_ns, min_share);
    if (text.empty()) continue;
    out << fitted(out, text, "  ", "    ") << '\n';
  }
}

void print_checks(const run_stats_result& run, std::ostream& out) {
  if (run.checks.empty()) return;
  out << '\n';
  for (const check& c : run.checks) {
    const std::string text = (c.unsafe ? "no verdict [" : "warning [") + std::string(c.id) +
                             "]: " + printable_line(c.text);
    out << fitted_sentences(out, text, "  ", "    ") << '\n';
    if (c.unsafe) out << fitted(out, "to do: " + c.to_do, "    ", "      ") << '\n';
  }
}

/// Prints one row for every run, so that the user can compare runs.
void print_runs(const std::vector<run_stats_result>& runs, std::ostream& out) {
  table rows;
  rows.row({"run", "batches", "preprocess", "std/mean", "wait", "delay", "step", "out of order"});
  for (const run_stats_result& run : runs) {
    const auto mean = [&run](quantity of) {
      const distribution& d = run.of(of).time;
      return d.count > 0 ? human_time(d.mean_ns) : std::string("-");
    };
    const distribution& preprocessed = run.of(quantity::preprocess).time;
    rows.row(
        {run.run.files->dir, std::to_string(run.batch_count), mean(quantity::preprocess),
         preprocessed.mean_ns > 0 ? human_share(preprocessed.std_ns / preprocessed.mean_ns) : "-",
         mean(quantity::wait), mean(quantity::delay), mean(quantity::step),
         std::to_string(run.out_of_order)});
  }
  rows.spare({"out of order", "std/mean"});
  out << "\n"
         "mean times per batch, one row for each run\n"
         "  wait: consumer waits; delay: delivery delay; step: consumer's step\n"
         "  std/mean: standard deviation of preprocess, divided by its mean\n";
  rows.print(out);
}

}  // namespace

void print_stats_table(const std::vector<run_stats_result>& runs, const stats_options& options,
                       std::ostream& out) {
  const char* before = "";
  for (const run_stats_result& run : runs) {
    out << before << printable_line(run.run.files->dir);
    if (!run.run.files->loader.empty()) {
      out << " (loader '" << printable_line(run.run.files->loader) << "')";
    }
    out << '\n';
    std::string_view between;
    if (!run.shown_ops.empty()) {
      print_ops(run, out);
      print_blocked_on(run, out);
      between = "\n";
    }
    if (!run.aggregated.empty()) {
      out << between;
      print_figures("aggregated", run.aggregated, &figure_field::op_column, out);
      between = "\n";
    }
    if (!run.run.batches.records().empty()) {
      out << between;
      print_batches(run, &run == &runs.front(), out);
    }
    print_pipeline_table(run, options.slowest.has_value(), out);
    if (options.memory) print_memory_table(run.run, run.calls_of_operations(), out);
    if (options.per_worker) print_workers(run, out);
    if (!run.accelerators.empty()) {
      const std::string text = "accelerator: " + accelerator_headline(run.accelerators);
      out << '\n' << fitted(out, printable_line(text), "  ", "    ") << '\n';
    }
    print_snapshot_threads(run.threads, out);
    print_checks(run, out);
    before = "\n";
  }
  if (runs.size() > 1) print_runs(runs, out);
}

}  // namespace lotus::tool
