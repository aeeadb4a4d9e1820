#include "sampling/commands/map_join.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/formats/csv.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "commands/map/mapping_print.hpp"
#include "log/folder/loaders.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/event_names.hpp"
#include "sampling/join/sample_join.hpp"
#include "sampling/join/thread_groups.hpp"
#include "sampling/read/located_samples.hpp"

namespace lotus::tool {
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

/// Writes a JSON object {"name":count,…}.
template <class Counts, class CountOf>
void write_counts(const Counts& counts, CountOf&& count_of, json_writer& to) {
  to.begin_object();
  for (const auto& [name, count] : counts) to.member(name, count_of(count));
  to.end_object();
}

/// Writes a JSON object {"name":samples,…}.
template <class Value>
void write_samples(const std::map<std::string, Value>& values, json_writer& to) {
  write_counts(
      by_value(values), [](const auto& of) { return total_of(of).samples; }, to);
}

void write_threads(const thread_groups& threads, const joined_run& run, json_writer& to) {
  to.begin_array();
  for (const thread_group& group : threads.sorted()) {
    to.begin_object().member("name", group.name()).member("threads", group.tids.size());
    to.member("scopes", group.recorded).member("samples", group.total.samples);
    to.member("cpu_ns", cpu_ns(group.total, run));
    to.member("share", group.total.share_of(run.total())).end_object();
  }
  to.end_array();
}

/// Writes the samples of one operation as a JSON object.
/// @param threads  groups of threads, written under the key `threads_key`.
void write_op(const joined_op& op, const joined_run& run, std::string_view threads_key,
              const thread_groups& threads, json_writer& to) {
  to.begin_object().member("samples", op.total.samples).member("cpu_ns", cpu_ns(op.total, run));
  if (&op != &run.outside) {
    to.member("wall_ns", op.wall_ns).member("may_wait_for_others", may_wait_for_others(op, run));
  }
  to.member("share", op.total.share_of(run.total())).key(threads_key);
  write_threads(threads, run, to);
  to.key("functions");
  write_samples(op.functions, to);
  to.key("inlined").begin_object();  // this object contains only functions with inlined code
  for (const auto& [key, function] : by_value(op.functions)) {
    if (function.inlined.empty()) continue;
    to.key(key);
    write_samples(function.inlined, to);
  }
  to.end_object().key("counters");
  write_counts(
      op.counters, [](std::uint64_t sum) { return sum; }, to);
  to.end_object();
}

void print_json(const joined_run& run, std::ostream& out) {
  std::string text;
  json_writer to(text);
  to.begin_object().member("event", run.event).key("ops").begin_object();
  for (const auto& [name, op] : run.ops) {
    to.newline().key(name);
    write_op(op, run, "meanwhile", op.meanwhile, to);
  }
  to.end_object().newline().key("outside");
  write_op(run.outside, run, "threads", run.outside_threads, to);
  to.end_object();
  out << text << '\n';
}

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

/// Prints a note if an operation may wait for work of other threads, so that its CPU time does not
/// show its full cost.
void print_others(const std::string& name, const joined_op& op, const joined_run& run,
                  std::ostream& out) {
  if (!may_wait_for_others(op, run)) return;
  std::string text = printable_line(name) + ": " + human_time(static_cast<double>(op.wall_ns)) +
                     " wall, " + human_time(static_cast<double>(op.total.value)) +
                     " CPU; meanwhile ran";
  std::string_view before = " ";
  for (const thread_group& group : op.meanwhile.sorted()) {
    text.append(before).append(printable_line(group.description())).append(", for ");
    text += human_time(static_cast<double>(group.total.value));
    before = "; ";
  }
  out << '\n'
      << fitted_sentences(out, text + ". " + printable_line(name) + " may wait for these threads.")
      << '\n';
}

void print_tables(const joined_run& run, std::ostream& out) {
  constexpr std::size_t max_functions = 10;
  table summary;
  summary.row({"operation", "samples", "sampled CPU", "self time", "share"});
  const auto add = [&](const std::string& name, const joined_samples& of, const std::string& wall) {
    const auto ns = cpu_ns(of, run);
    summary.row({name, std::to_string(of.samples), ns ? human_time(static_cast<double>(*ns)) : "-",
                 wall, human_share(of.share_of(run.total()))});
  };
  for (const auto& [name, op] : run.ops) {
    add(name, op.total, human_time(static_cast<double>(op.wall_ns)));
  }
  add("(outside of operations)", run.outside.total, "-");
  for (const thread_group& group : run.outside_threads.sorted()) {
    add("  " + group.description(), group.total, "-");
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
  functions("(outside of operations)", run.outside);
}

}  // namespace

std::optional<std::uint64_t> cpu_ns(const joined_samples& samples, const joined_run& run) {
  if (!is_cpu_time(run.event)) return std::nullopt;
  return samples.value;
}

void print_joined(const joined_run& run, print_as print, std::ostream& out) {
  if (print == print_as::json) return print_json(run, out);
  if (print == print_as::csv) return print_csv(run, out);
  print_tables(run, out);
}

namespace {

joined_run join_all(const map_join_options& options, diagnostic_log& diagnostics) {
  joined_run result;
  const std::vector<run_files> runs =
      whole_runs(find_runs(options.dir, options.prefix, diagnostics));
  if (!options.samples.empty()) {
    // Samples are assigned by thread id, and different threads of two runs may have the same id.
    if (runs.size() > 1) {
      throw usage_error(options.dir + ": holds several runs; give the folder of one");
    }
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

int run_map_join(const map_join_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  try {
    print_joined(join_all(options, diagnostics), options.print, out);
  } catch (const interrupted& stop) {
    end_by_signal(stop.signal);
  }
  return exit_fine;
}

}  // namespace lotus::tool
