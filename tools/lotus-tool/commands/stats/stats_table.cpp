#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/accelerator_text.hpp"
#include "base/printable.hpp"
#include "base/statistics/distribution.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "commands/stats/stats.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/words.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/shown_name.hpp"
#include "model/figures.hpp"
#include "model/quantities.hpp"
#include "model/stage_stats.hpp"

namespace lotus::tool {
namespace {

/// Prints a table with `count` rows of statistics. If a row has no values, prints only its count of
/// 0.
/// @param output  op_table or quantity_table.
/// @param cpu  whether CPU time was measured.
/// @param at   returns the figures of the row with a given index; called several times per row.
template <class At>
void print_figures(const std::string& head, std::size_t count, figure_output output, bool cpu,
                   const At& at, std::ostream& out) {
  const std::vector<const field*> columns = figure_columns(output, cpu);
  table lines = table_with(head, columns);
  lines.more_rows(count, [&](std::size_t i) {
    const figures& f = at(i);
    std::string name = output == op_table ? shown_name(f.name) : quantity_title(f.name);
    if (f.time.count == 0) return table::cells{std::move(name), "0"};
    return row_of(std::move(name), &f, columns);
  });
  lines.print(out);
}

void print_figures(const std::string& head, const std::vector<figures>& rows, figure_output output,
                   std::ostream& out) {
  const bool cpu =
      std::any_of(rows.begin(), rows.end(), [](const figures& of) { return of.cpu.has_value(); });
  print_figures(
      head, rows.size(), output, cpu, [&rows](std::size_t i) -> const figures& { return rows[i]; },
      out);
}

void print_ops(const run_stats_result& run, std::ostream& out) {
  const bool cpu =
      std::any_of(run.shown_ops.begin(), run.shown_ops.end(),
                  [&run](std::uint32_t op) { return run.run.ops[op].details().cpu.has_value(); });
  print_figures(
      "operation", run.shown_ops.size(), op_table, cpu,
      [&run](std::size_t i) { return figures_of(run.op(i)); }, out);
  if (run.ops_left_out > 0) {
    const std::size_t all = run.shown_ops.size() + run.ops_left_out;
    print_fitted(out,
                 "These are the operations with the most time of their own; " +
                     std::to_string(run.ops_left_out) + " more: --limit " + std::to_string(all),
                 "  ", "    ");
  }
}

/// @param with_meanings  whether to explain the rows "delivery delay" and "consumer's step".
void print_batches(const run_stats_result& run, bool with_meanings, std::ostream& out) {
  std::vector<figures> quantities = run.quantities;
  // If stages build the batches, no thread builds a whole batch. Then the row of the preprocess
  // times would be empty, so it is left out.
  if (!run.stages.empty() && run.of(quantity::preprocess).time.count == 0) {
    quantities.erase(quantities.begin() + static_cast<std::ptrdiff_t>(quantity::preprocess));
  }
  print_figures("batch times", quantities, quantity_table, out);
  for (const figures& of : quantities) note_label(out, quantity_title(of.name));
  note_label(out, "consumer");
  out << "  batches that arrived out of order: " << run.out_of_order << " of " << run.batch_count
      << '\n';
  if (!with_meanings || run.of(quantity::delay).time.count == 0) return;
  // The steps are explained too, because they are fewer than the batches.
  out << "  delivery delay: from when a batch is ready until the consumer receives it\n"
         "  consumer's step: from receiving a batch to the next wait (last batch: unknown)\n";
}

void print_stages(const run_stats_result& run, std::ostream& out) {
  using stage = const stage_stats&;
  const bool shared = std::any_of(run.stages.begin(), run.stages.end(),
                                  [](stage s) { return s.stage.pool.has_value(); });
  out << '\n';
  print_rows(
      "stage", run.stages, stage_columns(stage_table), [](stage s) { return s.name; }, out);
  print_sentences(
      out,
      "Measured throughput: " + rate(run.run.batches.achieved_per_s()) +
          ". In steady state (from the first batch to the last): " +
          rate(run.run.batches.steady_per_s()) +
          ". The capacity is the throughput if the stage's threads never had to wait. "
          "Shares are of the time of the stage's threads, from their first to last work." +
          (shared ? " 'shared': these threads also work in other stages, which limits the "
                    "capacity."
                  : ""),
      "  ", "    ");
}

/// Returns a text such as "item 7 took 48.34 ms (42.06 ms of it in queues)".
std::string item_text(const item& it, const std::string& kind) {
  std::string text =
      (kind == "items" ? "item " : "batch ") + std::to_string(shown_number(it.number));
  if (it.epoch > 0) text += " of epoch " + std::to_string(it.epoch);
  return text + " took " + human_time(it.extent.duration_ns()) + " (" + human_time(it.queueing_ns) +
         " of it in queues)";
}

void print_items(const item_stats& of, bool slowest, std::ostream& out) {
  if (of.slowest.empty()) return;
  const std::string from =
      of.from_first_item ? ", from the start of the first item of each" : ", through all stages";
  const std::string text = "latency of " + std::to_string(of.time.count) + ' ' + of.name + from +
                           ": p50 " + human_time(of.time.p50_ns) + ", p99 " +
                           human_time(of.time.p99_ns);
  if (!slowest) {
    print_sentences(
        out,
        text + ". The slowest: " + item_text(of.slowest.front(), of.name) +
            ". 'lotus-tool stats --slowest 3' shows where the 3 slowest spent their time.",
        "  ", "    ");
    return;
  }
  out << "\n  " << text << "; the slowest:\n";
  // Deeper operations are not indented further: lines would become as long as there are operations.
  constexpr std::size_t max_depth = 32;
  for (const slow_item& it : of.slowest) {
    out << "  " << item_text(it, of.name) << '\n';
    table tree(table_form::rows);
    for (const item_node& node : it.tree) {
      const std::string name = node.depth == 0 ? node.name : shown_name(node.name);
      tree.row({std::string(2 + 2 * std::min(node.depth, max_depth), ' ') + name,
                human_time(node.duration_ns),
                "at " + human_time(node.start_ns - it.extent.start_ns),
                "thread " + std::to_string(node.thread)});
    }
    tree.print(out);
  }
}

void print_async(const run_stats_result& run, std::ostream& out) {
  if (run.async.empty()) return;
  out << '\n';
  print_rows(
      "async operation", run.async, async_columns(async_table),
      [](const async_stats& of) { return shown_name(of.name); }, out);
}

void print_counters(const run_stats_result& run, std::ostream& out) {
  if (run.counters.empty()) return;
  const std::vector<const field*> columns =
      columns_of(description_of(static_cast<const counter_figures*>(nullptr)));
  table rows = table_with("counter", columns);
  for (const counter_figures& c : run.counters) {
    table::cells cells{c.name};
    for (const field* one : columns) {
      const bool bytes = c.of_heap && one->key != "count";
      cells.push_back(human_text(bytes ? column{"", unit::bytes} : one->shown, one->value(&c)));
    }
    rows.row(std::move(cells));
  }
  out << '\n';
  rows.print(out);
}

void print_pipeline_table(const run_stats_result& run, bool slowest, std::ostream& out) {
  if (!run.stages.empty()) print_stages(run, out);
  for (const item_stats& of : run.items) print_items(of, slowest, out);
  if (slowest && run.items.empty()) {
    out << "\n  --slowest shows nothing: the run has no stages (LOTUS_STAGE)\n";
  }
  print_async(run, out);
  print_counters(run, out);
}

/// What a worker did of an operation.
struct worker_line : worker_share {
  std::string operation;
};

/// Prints a row for every pair of a worker and an operation.
void print_workers(const run_stats_result& run, std::ostream& out) {
  static const description<worker_line> described =
      description<worker_line>(
          "worker_line", "what a worker did of an operation",
          {{"", &worker_line::operation, "the operation", column{"operation"}}})
          .with_base(description_of(static_cast<const worker_share*>(nullptr)));
  const std::vector<const field*> columns = columns_of(described);
  table workers = table_with("worker", columns);
  for (std::size_t f = 0; f < run.run.files->files.size(); ++f) {
    const auto add = [&](const worker_share& share, std::string operation) {
      if (share.count == 0) return;
      const worker_line line{share, std::move(operation)};
      workers.row(
          row_of("worker " + std::to_string(run.run.files->files[f].number), &line, columns));
    };
    add(batches_of_worker(run, f), "(preprocess)");
    for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
      const op_samples& op = run.op(i);
      if (f < op.by_file.size()) add(op.by_file[f], shown_name(op.name));
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
    print_fitted(out, text, "  ", "    ");
  }
}

void print_checks(const run_stats_result& run, std::ostream& out) {
  if (run.checks.empty()) return;
  out << '\n';
  for (const check& c : run.checks) {
    print_sentences(out, shown(c), "  ", "    ");
    if (c.unsafe) print_fitted(out, "to do: " + text_of(c.to_do), "    ", "      ");
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
      print_figures("aggregated", run.aggregated, op_table, out);
      between = "\n";
    }
    if (!run.run.batches.records().empty()) {
      out << between;
      print_batches(run, &run == &runs.front(), out);
    }
    print_pipeline_table(run, options.slowest.has_value(), out);
    if (options.memory) print_memory_table(run.memory(), out);
    if (options.per_worker) print_workers(run, out);
    if (!run.accelerators.empty()) {
      const std::string text = "accelerator: " + accelerator_headline(run.accelerators);
      out << '\n';
      print_fitted(out, printable_line(text), "  ", "    ");
    }
    print_snapshot_threads(run.threads, out);
    print_checks(run, out);
    before = "\n";
  }
  if (runs.size() > 1) print_runs(runs, out);
}

}  // namespace lotus::tool
