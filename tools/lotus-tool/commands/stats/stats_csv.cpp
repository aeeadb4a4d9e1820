#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/csv.hpp"
#include "commands/stats/stats.hpp"
#include "describe/description.hpp"
#include "model/figures.hpp"

namespace lotus::tool {
namespace {

std::vector<const field*> csv_columns(bool cpu) {
  std::vector<const field*> columns;
  for (const field& one : description_of(static_cast<const figures*>(nullptr)).fields()) {
    const bool shown = (one.outputs & stats_csv) != 0 && (cpu || (one.outputs & of_cpu) == 0);
    if (shown) columns.push_back(&one);
  }
  return columns;
}

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
      csv_columns(std::any_of(runs.begin(), runs.end(), knows_cpu));
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
