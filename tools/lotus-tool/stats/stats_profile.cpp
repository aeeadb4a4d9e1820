#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "log/log_files.hpp"
#include "log/shown_name.hpp"
#include "model/calls/call_profile.hpp"
#include "model/run_data.hpp"
#include "stats/stats.hpp"

namespace lotus::tool {
namespace {

std::string percall(std::int64_t ns, std::uint64_t calls) {
  return calls == 0 ? "-" : human_time(static_cast<double>(ns) / static_cast<double>(calls));
}

/// Places of `ops` in the order that is wanted; of the most self time first where none is.
std::vector<std::size_t> sorted(const std::vector<called_operation>& ops, const name_table& names,
                                stats_order order) {
  const auto figure = [&](std::size_t op) {
    const call_times& t = ops[op].all;
    const auto calls = static_cast<double>(t.calls);
    switch (order) {
      case stats_order::count:
        return calls;
      case stats_order::total:
        return static_cast<double>(t.total_ns);
      case stats_order::mean:
        return calls > 0 ? static_cast<double>(t.total_ns) / calls : 0;
      default:
        return static_cast<double>(t.self_ns);
    }
  };
  std::vector<std::size_t> places(ops.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto name = [&](std::size_t op) { return names.name(static_cast<std::uint32_t>(op)); };
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return order == stats_order::name ? natural_less(name(a), name(b)) : figure(a) > figure(b);
  });
  return places;
}

void print_profile(const run_data& run, const stats_options& options, std::ostream& out) {
  const std::vector<called_operation> ops = profile_calls(run);
  call_times sum;
  for (const called_operation& op : ops) {
    sum.calls += op.all.calls;
    sum.primitive += op.all.primitive;
    sum.self_ns += op.all.self_ns;
  }
  out << printable_line(run.files->dir) << '\n' << sum.calls << " calls";
  if (sum.primitive != sum.calls) out << " (" << sum.primitive << " primitive)";
  out << ", " << human_time(static_cast<double>(sum.self_ns)) << " on " << run.files->files.size()
      << (run.files->files.size() == 1 ? " thread\n" : " threads\n");
  table rows;
  rows.row({"operation", "ncalls", "tottime", "percall", "cumtime", "percall"});
  std::size_t left = options.limit.value_or(ops.size());
  for (const std::size_t op : sorted(ops, run.names, options.order)) {
    const call_times& t = ops[op].all;
    if (t.calls == 0) continue;
    if (left-- == 0) break;
    const std::string calls = std::to_string(t.calls);
    rows.row({shown_name(run.names.name(static_cast<std::uint32_t>(op))),
              t.primitive == t.calls ? calls : calls + '/' + std::to_string(t.primitive),
              human_time(static_cast<double>(t.self_ns)), percall(t.self_ns, t.calls),
              human_time(static_cast<double>(t.total_ns)), percall(t.total_ns, t.primitive)});
  }
  rows.print(out);
}

}  // namespace

int print_stats_profile(const stats_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const char* before = "";
  bool any = false;
  for (const std::string& dir : options.dirs) {
    for (const run_files& files : find_runs(dir, options.prefix, diagnostics)) {
      const run_data run =
          read_run(files, {false, false, true, options.group_by_args}, diagnostics);
      if (run.operations == 0) {
        diagnostics.warning(files.dir + ": no operations in its logs, left out");
        continue;
      }
      any = true;
      out << before;
      print_profile(run, options, out);
      before = "\n";
    }
  }
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (!any) throw input_error("no operations in the logs");
  return exit_fine;
}

}  // namespace lotus::tool
