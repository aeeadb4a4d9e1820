#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "distribution.hpp"
#include "names.hpp"
#include "samples.hpp"
#include "stats.hpp"
#include "table.hpp"

namespace lotus::tool {
namespace {

void print_ops(const run_stats_result& run, std::ostream& out) {
  if (run.ops.empty()) return;
  table ops;
  ops.row({"operation", "count", "mean", "std", "min", "p50", "p90", "p99", "max", "< 10 ms",
           "< 100 us", "total", "self"});
  for (const op_stats& op : run.ops) {
    const distribution& t = op.time;
    ops.row({op.name, std::to_string(t.count), human_time(t.mean_ns), human_time(t.std_ns),
             human_time(static_cast<double>(t.min_ns)), human_time(t.p50_ns), human_time(t.p90_ns),
             human_time(t.p99_ns), human_time(static_cast<double>(t.max_ns)),
             human_share(op.below_10ms), human_share(op.below_100us),
             human_time(static_cast<double>(t.total_ns)),
             human_time(static_cast<double>(op.self_ns))});
  }
  ops.print(out);
}

void quantity_row(table& quantities, const std::string& name, const distribution& d,
                  const std::string& above_500ms) {
  if (d.count == 0) {
    quantities.row({name, "0"});
    return;
  }
  quantities.row({name, std::to_string(d.count), human_time(d.mean_ns), human_time(d.std_ns),
                  d.mean_ns != 0 ? human_share(d.std_ns / d.mean_ns) : "-",
                  human_time(static_cast<double>(d.min_ns)), human_time(d.p25_ns),
                  human_time(d.p50_ns), human_time(d.p75_ns),
                  human_time(static_cast<double>(d.max_ns)), human_time(d.p75_ns - d.p25_ns),
                  above_500ms, human_time(static_cast<double>(d.total_ns))});
}

void print_batches(const run_stats_result& run, std::ostream& out) {
  if (run.batches.all().empty()) return;
  table quantities;
  quantities.row({"per batch", "count", "mean", "std", "std/mean", "min", "p25", "p50", "p75",
                  "max", "iqr", "> 500 ms", "total"});
  quantity_row(quantities, "preprocess", run.preprocess, "");
  quantity_row(quantities, "wait", run.wait, human_share(run.wait_above_500ms));
  quantity_row(quantities, "delay", run.delay, human_share(run.delay_above_500ms));
  quantity_row(quantities, "step", run.step, "");
  quantities.print(out);
  out << "  out-of-order arrivals: " << run.out_of_order << " of " << run.batch_count
      << " batches\n";
}

/// A row for every worker and operation.
void print_workers(const run_stats_result& run, std::ostream& out) {
  table workers;
  workers.row({"worker", "operation", "count", "mean", "max", "total"});
  for (std::size_t f = 0; f < run.file_numbers.size(); ++f) {
    const std::string number = std::to_string(run.file_numbers[f]);
    const worker_batches made = batches_of_worker(run, f);
    const auto mean = [](std::int64_t total_ns, std::uint64_t count) {
      return human_time(static_cast<double>(total_ns) / static_cast<double>(count));
    };
    if (made.count > 0) {
      workers.row({number, "(batches)", std::to_string(made.count), mean(made.total_ns, made.count),
                   "", human_time(static_cast<double>(made.total_ns))});
    }
    for (const op_stats& op : run.ops) {
      if (f >= op.by_file.size() || op.by_file[f].count == 0) continue;
      const worker_share& share = op.by_file[f];
      workers.row({number, op.name, std::to_string(share.count), mean(share.total_ns, share.count),
                   human_time(static_cast<double>(share.max_ns)),
                   human_time(static_cast<double>(share.total_ns))});
    }
  }
  out << '\n';
  workers.print(out);
}

/// One row for every run, to be compared.
void print_runs(const std::vector<run_stats_result>& runs, std::ostream& out) {
  table rows;
  rows.row({"run", "batches", "preprocess", "std/mean", "wait", "delay", "step", "out of order"});
  for (const run_stats_result& run : runs) {
    const auto mean = [](const distribution& d) {
      return d.count > 0 ? human_time(d.mean_ns) : std::string("-");
    };
    const distribution& made = run.preprocess;
    rows.row({run.dir, std::to_string(run.batch_count), mean(made),
              made.mean_ns > 0 ? human_share(made.std_ns / made.mean_ns) : "-", mean(run.wait),
              mean(run.delay), mean(run.step), std::to_string(run.out_of_order)});
  }
  out << "\nmeans of all runs\n";
  rows.print(out);
}

}  // namespace

void print_stats_table(const std::vector<run_stats_result>& runs, bool per_worker,
                       std::ostream& out) {
  const char* before = "";
  for (const run_stats_result& run : runs) {
    out << before << printable_line(run.dir) << '\n';
    print_ops(run, out);
    if (!run.ops.empty()) out << '\n';
    print_batches(run, out);
    if (per_worker) print_workers(run, out);
    before = "\n";
  }
  if (runs.size() > 1) print_runs(runs, out);
}

}  // namespace lotus::tool
