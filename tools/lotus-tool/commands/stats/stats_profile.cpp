#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "commands/stats/stats.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "model/calls/call_profile.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

std::string percall(std::int64_t ns, std::uint64_t calls) {
  return calls == 0 ? "-" : human_time(static_cast<double>(ns) / static_cast<double>(calls));
}

struct profile_row {
  std::string name;
  call_times times;
};

/// Returns a row for each recorded operation, followed by the aggregated ones. The self time of a
/// recorded operation does not contain the aggregated calls inside it.
std::vector<profile_row> rows_of(const run_data& run) {
  std::vector<profile_row> rows;
  const std::vector<called_operation> ops = profile_calls(run);
  for (std::size_t op = 0; op < ops.size(); ++op) {
    if (ops[op].all.calls == 0) continue;
    rows.push_back({shown_name(run.names.name(static_cast<std::uint32_t>(op))), ops[op].all});
  }
  for (const aggregated_op& op : run.aggregated) {
    call_times times;
    // Recursion is unknown for aggregated calls, so all count as primitive (not recursive).
    times.calls = times.primitive = op.count;
    times.self_ns = op.self_ns;
    times.total_ns = op.total_ns;
    rows.push_back({shown_name(op.name) + " (aggregated)", times});
  }
  return rows;
}

/// Sorts the rows in the requested order. By default the largest self time comes first.
void sort_rows(std::vector<profile_row>& rows, const std::string& order) {
  const auto figure = [&](const call_times& t) {
    if (order == "count") return static_cast<double>(t.calls);
    const auto total_ns = static_cast<double>(t.total_ns);
    if (order == "total") return total_ns;
    if (order == "mean") return t.calls > 0 ? total_ns / static_cast<double>(t.calls) : 0;
    return static_cast<double>(t.self_ns);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const profile_row& a, const profile_row& b) {
    return order == "name" ? natural_less(a.name, b.name) : figure(a.times) > figure(b.times);
  });
}

/// Returns the number of threads that called operations. A thread may have several logs (as
/// consumer, as worker, and one for each recording), but is counted once.
std::size_t threads_with_operations(const run_data& run) {
  const run_processes processes = run_processes::read(run.files->info_dir, run.files->earlier_info);
  std::set<std::pair<std::uint64_t, std::uint64_t>> threads;  // pairs of pid and tid
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    if (!run.has_operations(file)) continue;
    const std::uint64_t number = run.files->files[file].number;
    const process_info* const process = processes.process_of(number);
    threads.emplace(process != nullptr ? process->pid : 0,
                    process != nullptr ? process->thread_of(number) : number);
  }
  return threads.size();
}

void print_profile(const run_data& run, const stats_options& options, std::ostream& out) {
  std::vector<profile_row> all = rows_of(run);
  call_times sum;
  for (const profile_row& row : all) {
    sum.calls += row.times.calls;
    sum.primitive += row.times.primitive;
    sum.self_ns += row.times.self_ns;
  }
  out << printable_line(run.files->dir) << '\n' << sum.calls << " calls";
  if (sum.primitive != sum.calls) out << " (" << sum.primitive << " primitive)";
  out << ", " << human_time(sum.self_ns) << " in total";
  if (const std::size_t threads = threads_with_operations(run); threads > 0) {
    out << ", on " << threads << (threads == 1 ? " thread" : " threads");
  }
  out << '\n';
  out << "tottime: time without inner calls; cumtime: time with them (as in cProfile)\n"
         "percall: the time to its left, per call\n";
  sort_rows(all, options.order);
  if (options.limit) all.resize(std::min(all.size(), *options.limit));
  table rows;
  rows.row({"operation", "ncalls", "tottime", "percall", "cumtime", "percall"});
  for (const profile_row& row : all) {
    const call_times& t = row.times;
    const std::string calls = std::to_string(t.calls);
    rows.row({row.name, t.primitive == t.calls ? calls : calls + '/' + std::to_string(t.primitive),
              human_time(t.self_ns), percall(t.self_ns, t.calls), human_time(t.total_ns),
              percall(t.total_ns, t.primitive)});
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
      if (run.operations == 0 && run.aggregated.empty()) {
        diagnostics.warning(files.dir + ": ignored: its logs contain no operations");
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
