#include "commands/stats/stats_csv.hpp"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/csv.hpp"
#include "commands/stats/stats.hpp"
#include "model/figures.hpp"

namespace lotus::tool {
namespace {

bool in_csv(const figure_field& field, bool cpu) {
  return (field.shown & stats_csv) != 0 && (cpu || !field.of_cpu);
}

bool knows_cpu(const run_stats_result& run) {
  return std::any_of(
             run.shown_ops.begin(), run.shown_ops.end(),
             [&run](std::uint32_t op) { return run.run.ops[op].details().cpu.has_value(); }) ||
         std::any_of(run.quantities.begin(), run.quantities.end(),
                     [](const figures& of) { return of.cpu.has_value(); });
}

/// Prints the statistics of one operation or quantity as a row.
/// @param cpu  whether to print columns of CPU time.
void print_row(std::ostream& out, const std::string& run, std::string_view kind, const figures& of,
               bool cpu) {
  out << run << ',' << kind << ',' << csv_field(of.name);
  for (const figure_field& field : figure_fields()) {
    if (!in_csv(field, cpu)) continue;
    out << ',';
    if (of.time.count > 0 || field.of_none) out << exact_text(field.get(of));
  }
  out << '\n';
}

}  // namespace

void print_stats_csv(const std::vector<run_stats_result>& runs, std::ostream& out) {
  const bool cpu = std::any_of(runs.begin(), runs.end(), knows_cpu);
  out << "run,kind,name";
  for (const figure_field& field : figure_fields()) {
    if (in_csv(field, cpu)) out << ',' << field.key;
  }
  out << '\n';
  for (const run_stats_result& run : runs) {
    const std::string dir = csv_field(run.run.files->dir);
    for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
      print_row(out, dir, "op", figures_of(run.op(i)), cpu);
    }
    for (const figures& of : run.aggregated) print_row(out, dir, "aggregated", of, cpu);
    for (const figures& of : run.quantities) print_row(out, dir, "batch", of, cpu);
    for (const stage_stats& stage : run.stages) print_row(out, dir, "stage", stage, cpu);
    for (const item_stats& of : run.items) print_row(out, dir, "item", of, cpu);
    for (const async_stats& of : run.async) print_row(out, dir, "async", of, cpu);
  }
}

}  // namespace lotus::tool
