#include "sampling/commands/map_samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/csv.hpp"
#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/starts.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/function_report.hpp"
#include "sampling/read/located_samples.hpp"
#include "sampling/record/sample_recorder.hpp"

namespace lotus::tool {
namespace {

/// Samples the program until it ends. Returns the path of the samples. If an error occurs, prints a
/// warning, waits for the end of the program and returns "": the error must not affect the program.
std::string sample_until_end(child_process& child, sample_recorder& recorder,
                             diagnostic_log& diagnostics) {
  constexpr int wait_ms = 100;
  try {
    while (!child.ended(0)) recorder.work(wait_ms);
    return recorder.finish();
  } catch (const std::exception& failure) {
    diagnostics.warning(std::string(failure.what()) + "; the rest of the samples is lost");
  }
  recorder.stop();
  child.ended(-1);
  return {};
}

void report_what_next(const map_record_options& options, const sample_recorder& recorder,
                      const std::string& path, diagnostic_log& diagnostics) {
  if (!recorder.saw_logs()) {
    diagnostics.warning(
        "the program has recorded nothing: it contains no markers such as LOTUS_SCOPE, or none "
        "was reached. The samples are in " +
        path);
    return;
  }
  diagnostics.note(
      "the samples are in " + path +
      (recorder.with_kernel() ? "" : " (user code only: kernel.perf_event_paranoid is 2)") +
      "; next: lotus-tool map join " + recorder.logs() +
      (options.output.empty() ? "" : " --samples " + path));
}

}  // namespace

/// Threads of one name, with their samples.
struct shown_threads {
  const joined_run* run = nullptr;
  thread_group group;
};
/// An operation, or what is outside of operations.
struct shown_op {
  const joined_run* run = nullptr;
  const joined_op* op = nullptr;

  bool is_outside() const { return op == &run->outside; }
  bool is_op() const { return !is_outside(); }
};

namespace {

const joined_samples& total_of(const joined_samples& samples) {
  return samples;
}

const joined_samples& total_of(const joined_function& function) {
  return function.total;
}

/// Returns the elements sorted by value, the largest first.
template <class Value>
std::vector<std::pair<std::string, Value>> by_value(const std::map<std::string, Value>& values) {
  std::vector<std::pair<std::string, Value>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return total_of(a.second).value > total_of(b.second).value;
  });
  return sorted;
}

/// Returns the numbers of samples, the largest first.
template <class Value>
std::vector<std::pair<std::string, std::uint64_t>> samples_of(
    const std::map<std::string, Value>& values) {
  std::vector<std::pair<std::string, std::uint64_t>> samples;
  for (const auto& [name, of] : by_value(values)) samples.emplace_back(name, total_of(of).samples);
  return samples;
}

std::vector<shown_threads> threads_of(const thread_groups& groups, const joined_run& run) {
  std::vector<shown_threads> threads;
  for (const thread_group& group : groups.sorted()) threads.push_back({&run, group});
  return threads;
}

}  // namespace

const description<shown_threads>& description_of(const shown_threads*) {
  using t = const shown_threads&;
  static const description<shown_threads> all(
      "threads", "threads of one name",
      {
          {"name", [](t of) { return of.group.name(); }, "their name"},
          {"threads", [](t of) { return of.group.tids.size(); }, "how many"},
          {"scopes", [](t of) { return of.group.recorded; },
           "whether these threads recorded scopes"},
          {"samples", [](t of) { return of.group.total.samples; }, "number of samples",
           column{"samples"}},
          {"cpu_ns", [](t of) { return cpu_ns(of.group.total, *of.run); },
           "time on a CPU in ns; null if no sampled event measures time",
           column{"sampled CPU", unit::time_ns}},
          {"", [](t) { return 0; }, "not known of threads", column{"self time"},
           [](t) { return false; }},
          {"share", [](t of) { return of.group.total.share_of(of.run->total()); },
           "share of all, 0 to 1", column{"share", unit::share}},
      });
  return all;
}

const description<shown_op>& description_of(const shown_op*) {
  using o = const shown_op&;
  using counts = std::vector<std::pair<std::string, std::uint64_t>>;
  static const description<shown_op> all(
      "samples", "the samples of an operation, or those outside of operations",
      {
          {"samples", [](o of) { return of.op->total.samples; }, "number of samples",
           column{"samples"}},
          {"cpu_ns", [](o of) { return cpu_ns(of.op->total, *of.run); },
           "time on a CPU in ns; null if no sampled event measures time",
           column{"sampled CPU", unit::time_ns}},
          {"wall_ns", [](o of) { return of.op->wall_ns; }, "time in the operation in ns",
           &shown_op::is_op, column{"self time", unit::time_ns}},
          {"may_wait_for_others", [](o of) { return may_wait_for_others(*of.op, *of.run); },
           "whether other threads may do its work", &shown_op::is_op},
          {"share", [](o of) { return of.op->total.share_of(of.run->total()); },
           "share of all, 0 to 1", column{"share", unit::share}},
          {"meanwhile", [](o of) { return threads_of(of.op->meanwhile, *of.run); },
           "threads without scopes that ran meanwhile, by name", &shown_op::is_op},
          {"threads", [](o of) { return threads_of(of.run->outside_threads, *of.run); },
           "the threads outside of operations, by name", &shown_op::is_outside},
          {"functions", [](o of) { return samples_of(of.op->functions); },
           "by function, FUNCTION|MODULE: samples"},
          {"inlined",
           [](o of) {
             std::vector<std::pair<std::string, counts>> inlined;
             for (const auto& [key, function] : by_value(of.op->functions)) {
               if (function.inlined.empty()) continue;
               inlined.emplace_back(key, samples_of(function.inlined));
             }
             return inlined;
           },
           "by function: samples of what is inlined in it"},
          {"counters", [](o of) { return of.op->counters; }, "by counter of the CPU: its sum"},
      });
  return all;
}

const description<joined_run>& description_of(const joined_run*) {
  using r = const joined_run&;
  static const description<joined_run> all(
      "map_join", "samples of a run, by operation",
      {
          {"event", &joined_run::event, "what triggered a sample"},
          {"ops",
           [](r run) {
             return named_values<shown_op>{[&run](const auto& visit) {
               for (const auto& [name, op] : run.ops) visit(name, shown_op{&run, &op});
             }};
           },
           "by operation"},
          {"outside",
           [](r run) {
             return shown_op{&run, &run.outside};
           },
           "samples in no operation"},
      });
  return all;
}

namespace {

constexpr const char* outside_name = "(outside of operations)";

void print_csv(const joined_run& run, std::ostream& out) {
  out << "op,function,module,samples\n";
  const auto rows = [&out](const std::string& name, const joined_op& op) {
    for (const auto& [key, of] : by_value(op.functions)) {
      const std::size_t bar = key.rfind('|');
      out << csv_field(name) << ',' << csv_field(key.substr(0, bar)) << ','
          << csv_field(key.substr(bar + 1)) << ',' << of.total.samples << '\n';
    }
  };
  for (const auto& [name, op] : run.ops) rows(name, op);
  rows("", run.outside);
}

void inlined_rows(const joined_function& function, table& to) {
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const auto& [name, of] : by_value(function.inlined)) {
    if (shown++ == most) return;
    to.row({"  inlined: " + shortened(name), std::to_string(of.samples), ""});
  }
}

/// Returns a text such as "4 threads named av:h264:df*, without operations".
std::string group_text(const thread_group& of) {
  const std::size_t n = of.tids.size();
  std::string text = std::to_string(n) + (n == 1 ? " thread" : " threads");
  const std::string& first = *of.names.begin();
  const std::string name = of.name();
  if (first == "lotus-drain" || first == "lotus-sampler" || first == "lotus-waits") {
    return text + " of Lotus (" + name + ')';
  }
  text += name.empty() ? " without a name" : " named " + name;
  return of.recorded ? text : text + ", without operations";
}

/// Prints a note if an operation may wait for work of other threads, so that its CPU time does not
/// show its full cost.
void print_others(const std::string& name, const joined_op& op, const joined_run& run,
                  std::ostream& out) {
  if (!may_wait_for_others(op, run)) return;
  std::string text = printable_line(name) + ": " + human_time(op.wall_ns) + " wall, " +
                     human_time(static_cast<double>(op.total.value)) + " CPU; meanwhile ran";
  std::string_view before = " ";
  for (const thread_group& group : op.meanwhile.sorted()) {
    text.append(before).append(printable_line(group_text(group))).append(", for ");
    text += human_time(static_cast<double>(group.total.value));
    before = "; ";
  }
  out << '\n';
  print_sentences(out, text + ". " + printable_line(name) + " may wait for these threads.");
}

void print_tables(const joined_run& run, std::ostream& out) {
  constexpr std::size_t max_functions = 10;
  const auto columns = columns_of(description_of(static_cast<const shown_op*>(nullptr)));
  table summary = table_with("operation", columns);
  const auto add = [&](const std::string& name, const joined_op& op) {
    const shown_op of{&run, &op};
    summary.row(row_of(name, &of, columns));
  };
  for (const auto& [name, op] : run.ops) add(name, op);
  add(outside_name, run.outside);
  const auto of_threads = columns_of(description_of(static_cast<const shown_threads*>(nullptr)));
  for (const shown_threads& threads : threads_of(run.outside_threads, run)) {
    summary.row(row_of("  " + group_text(threads.group), &threads, of_threads));
  }
  summary.print(out);
  for (const auto& [name, op] : run.ops) print_others(name, op, run, out);
  const auto functions = [&](const std::string& name, const joined_op& op) {
    if (op.total.samples == 0) return;
    out << '\n' << printable_line(name) << '\n';
    table rows;
    rows.row({"function|module", "samples", "share"});
    std::size_t shown = 0;
    for (const auto& [key, of] : by_value(op.functions)) {
      if (shown++ == max_functions) {
        rows.row({"... " + std::to_string(op.functions.size() - max_functions) + " more"});
        break;
      }
      rows.row({shortened(key), std::to_string(of.total.samples),
                human_share(of.total.share_of(op.total))});
      inlined_rows(of, rows);
    }
    rows.print(out);
  };
  for (const auto& [name, op] : run.ops) functions(name, op);
  functions(outside_name, run.outside);
}

joined_run join_all(const map_join_options& options, diagnostic_log& diagnostics) {
  joined_run result;
  const std::vector<run_files> runs =
      whole_runs(find_runs(options.dir, options.prefix, diagnostics));
  // Samples are assigned by thread id, and different threads of two runs may have the same id.
  if (!options.samples.empty() && runs.size() > 1) {
    throw usage_error(options.dir + ": holds several runs; give the folder of one");
  }
  bool any = false;
  for (const run_files& run : runs) {
    located_samples samples;
    if (options.samples.empty()) samples = samples_of_run(run.dir, diagnostics);
    for (const std::string& file : options.samples) add_samples(file, samples, diagnostics);
    if (samples.samples.empty()) continue;
    any = true;
    join(run, samples, result, diagnostics);
  }
  if (!any) {
    throw input_error(options.dir +
                      ": no samples next to the logs; record samples with 'lotus-tool map record', "
                      "or pass perf's samples with --samples");
  }
  return result;
}

}  // namespace

std::optional<std::uint64_t> cpu_ns(const joined_samples& samples, const joined_run& run) {
  if (!is_cpu_time(run.event)) return std::nullopt;
  return samples.value;
}

void print_joined(const joined_run& run, print_as print, std::ostream& out) {
  if (print == print_as::json) return lotus::tool::print_json(run, out);
  if (print == print_as::csv) return print_csv(run, out);
  print_tables(run, out);
}

int run_map_join(const map_join_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  try {
    const joined_run joined = join_all(options, diagnostics);
    if (const int status = diagnostics.finish(options.strict); status != exit_fine) return status;
    print_joined(joined, options.print, out);
  } catch (const interrupted& stop) {
    end_by_signal(stop.signal);
  }
  return exit_fine;
}

int run_map_record(const map_record_options& options, std::ostream& err) {
  if (options.program.empty()) throw usage_error("map record: put the program after --");
  diagnostic_log diagnostics(err, options.quiet);
  command what;
  what.arguments = options.program;
  what.environment = place_for_logs({}).environment;
  child_process child(what);
  sample_recorder recorder(child.pid(), options.rate_hz, options.output);
  child.go();
  const std::string path = sample_until_end(child, recorder, diagnostics);
  if (!path.empty()) report_what_next(options, recorder, path, diagnostics);
  return child.state().status;
}

}  // namespace lotus::tool
