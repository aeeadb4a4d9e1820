#include "threads/view/threads_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "threads/analysis/seen_together.hpp"
#include "threads/view/headline.hpp"

namespace lotus::tool {
namespace {

/// Returns the elements to print: the first `most` of those that take at least 2 % of the group's
/// time.
/// @param of  the part of the group's time to which the elements' shares refer, 0..1.
template <class Part>
std::vector<Part> main_parts(const std::vector<Part>& all, double of, std::size_t most) {
  constexpr double min_share = 0.02;
  std::vector<Part> chosen;
  for (const Part& part : all) {
    if (chosen.size() < most && part.share * of >= min_share) chosen.push_back(part);
  }
  return chosen;
}

/// Returns a time such as "4.2 s" or "12 ms".
std::string shown_time(double time_s) {
  if (time_s < 0.1) return fixed_point(1e3 * time_s, time_s < 0.01 ? 1 : 0) + " ms";
  return fixed_point(time_s, time_s < 10 ? 2 : 1) + " s";
}

/// Prints when each hop of the chain of waits was first seen, and for how long the one before
/// waited for it.
void print_chain(const threads_view& view, std::ostream& out) {
  if (view.chain.size() < 2) return;
  table hops;
  hops.row({"chain of waits", "@ first seen", "+ in total"});
  for (const chain_hop& hop : view.chain) {
    const bool is_timed = hop.seen || &hop == &view.chain.front();
    const std::string text = shown_group(view.groups[hop.group]);
    hops.row({text + (hop.wait ? " (waiting)" : " (working)"),
              hop.end_s > 0 ? '@' + shown_time(hop.begin_s) : "-",
              is_timed ? '+' + shown_time(hop.time_s) : "-"});
  }
  hops.print(out);
  out << '\n';
}

void print_summary(const threads_view& view, std::ostream& out) {
  constexpr std::size_t max_groups = 12;
  const std::vector<thread_activity>& groups = view.groups;
  const bool has_times = view.samples.duration_ns > 0;
  const bool several_in_turn =
      has_times && std::any_of(groups.begin(), groups.end(), [](const thread_activity& group) {
        return group.threads > group.at_once;
      });
  table summary;
  std::vector<std::string> head{"threads (% of their time)", "on CPU", "waits for CPU", "blocked"};
  if (has_times) head.emplace_back("CPU time");
  if (several_in_turn) head.insert(head.end(), {"lifetime", "at once"});
  summary.row(head);
  for (std::size_t i = 0; i < std::min(groups.size(), max_groups); ++i) {
    const thread_activity& group = groups[i];
    std::vector<std::string> row{shown_group(group)};
    for (const double share : {group.running, group.run_queue, group.blocked_share()}) {
      row.push_back(group.is_sampled() ? whole_percent(share) : "-");
    }
    if (has_times) row.push_back(shown_time(group.cpu_s));
    if (several_in_turn) {
      row.push_back(shown_time(group.time_s / static_cast<double>(group.threads)));
      row.push_back(std::to_string(group.at_once));
    }
    summary.row(row);
  }
  if (groups.size() > max_groups) {
    summary.row({std::to_string(groups.size() - max_groups) + " more groups of threads"});
  }
  summary.print(out);
}

/// Returns the number of threads that are in no group, such as ones that ended unseen.
std::uint64_t threads_not_shown(const threads_view& view) {
  std::uint64_t count = view.samples.more_threads;
  const std::vector<std::size_t> group_of = groups_of_threads(view.samples, view.groups);
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    // The threads of the Lotus library have no times.
    const bool has_times = view.samples.threads[i].started_ns != 0;
    if (has_times && group_of[i] == seen_together::no_group) ++count;
  }
  return count;
}

/// Prints how many CPUs the program used.
void print_use(const threads_view& view, std::ostream& out) {
  const thread_samples& samples = view.samples;
  if (samples.all_cpu_ns == 0 || samples.duration_ns == 0 || samples.cpus == 0) return;
  const double used =
      static_cast<double>(samples.all_cpu_ns) / static_cast<double>(samples.duration_ns);
  const std::uint64_t hidden = threads_not_shown(view);
  out << '\n';
  print_sentences(
      out,
      "The program used " + fixed_point(used, 2) + " of " + std::to_string(samples.cpus) +
          " CPUs on average" +
          (hidden == 0 ? "." : ". " + std::to_string(hidden) + " of its threads are not shown."));
}

/// Prints for each phase of the run which threads used the CPUs, if there are several phases.
void print_phases(const threads_view& view, std::ostream& out) {
  if (view.phases.size() < 2) return;
  table phases;
  const std::string of_cpus =
      view.samples.cpus > 0 ? " (of " + std::to_string(view.samples.cpus) + ')' : "";
  phases.row({"phases", "CPUs in use" + of_cpus});
  for (const run_phase& phase : view.phases) {
    const std::string mostly =
        phase.group ? shown_group(view.groups[*phase.group]) + ", in " + shown_work(phase.function)
                    : "nearly nothing runs";
    phases.row(
        {fixed_point(phase.begin_s, 2) + " to " + fixed_point(phase.end_s, 2) + " s: " + mostly,
         fixed_point(phase.cpus, 2)});
  }
  out << '\n';
  phases.print(out);
}

void print_group(const thread_activity& group, const std::vector<thread_activity>& groups,
                 std::ostream& out) {
  constexpr std::size_t max_parts = 4;
  const auto line = [&out](double share, const std::string& text) {
    std::string percent = whole_percent(share);
    percent.insert(0, percent.size() < 6 ? 6 - percent.size() : 0, ' ');
    print_fitted(out, text, "  " + percent + "  ", std::string(10, ' '));
  };
  const auto waits = main_parts(group.blocked, 1, max_parts);
  const auto functions = main_parts(group.functions, group.running, max_parts);
  if ((waits.empty() && functions.empty()) || !group.is_sampled()) return;
  out << '\n' << shown_group(group) << '\n';
  for (const blocked_part& part : waits) {
    std::string text = part.reason == lotus::detail::wait_reason::sleep
                           ? "sleeps in " + shown_place(part.function)
                           : "waits in " + shown_place(part.function) + ' ' + shown_wait(part);
    if (part.of) {
      text += part.sure ? ", so it waits for " : ", so it probably waits for ";
      text += shown_target(part, groups, group);
    }
    line(part.share, text);
  }
  for (const function_share& one : functions) {
    line(one.share * group.running, "runs in " + shown_work(one.function));
  }
}

/// Says how to get the names of functions that matter and have none.
void print_without_symbols(const std::vector<thread_activity>& groups, std::ostream& out) {
  constexpr double min_share = 0.1;
  std::set<std::string> modules;
  const auto add = [&modules](const source_place& place, double share) {
    if (share < min_share || place.has_name || is_of_runtime(place)) return;
    modules.insert(printable_line(std::string(file_name(place.module))));
  };
  for (const thread_activity& group : groups) {
    for (const blocked_part& part : group.blocked) add(part.function, part.share);
    for (const function_share& one : group.functions) {
      add(one.function, one.share * group.running);
    }
  }
  if (modules.empty()) return;
  std::string names;
  for (const std::string& name : modules) names += (names.empty() ? "`" : ", `") + name + '`';
  out << '\n';
  print_sentences(out, "Functions of " + names +
                           " are shown as addresses, because symbols are missing. To get "
                           "names, install debug symbols (a package -dbgsym or -debuginfo) "
                           "or set DEBUGINFOD_URLS, and record again.");
}

void print_markers(const std::vector<suggested_marker>& markers, std::ostream& out) {
  if (markers.empty()) return;
  out << '\n';
  print_sentences(
      out, std::string("To record times per batch, include ") + markers.front().header() +
               (markers.front().is_c ? " (this is a C program, so link lotus::lotus too)" : "") +
               " and add these lines, where i is the batch's number" +
               (markers.front().sure ? "" : " (their places are a guess)") +
               ". If a line contains the head of a loop, first put the call on a line of its own "
               "in the loop's body.");
  for (const suggested_marker& marker : markers) {
    out << "  " << printable_line(marker.at.file) << ':' << marker.at.line << ' '
        << (marker.is_after() ? "after" : "before") << " this line"
        << (is_lambda(marker.at) ? ", inside the lambda: " : ": ") << marker.text() << '\n';
  }
}

/// Whether the run has the log of a consumer, so that the program already has markers for batches.
/// Compact logs may contain one.
bool has_batches(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find("_main_pid_") != std::string::npos) return true;
    if (name.rfind(".lotus_compact_", 0) == 0) return true;
  }
  return false;
}

/// Prints how the program was sampled, and what this means for the view.
void print_sampling(const thread_samples& samples, std::ostream& out) {
  if (samples.interval_ns == 0) {
    print_sentences(
        out,
        "The functions in which threads run are unknown, because the kernel did not permit "
        "perf_event_open. The shares come from the kernel (/proc/PID/task/TID/schedstat).");
  }
  constexpr double much_too_late_s = 0.003;
  if (samples.late_s >= much_too_late_s) {
    print_sentences(out,
                    "The machine was busy, so wait samples were taken " +
                        std::to_string(std::lround(1e3 * samples.late_s)) +
                        " ms late on average. Therefore the shares of short waits are too high.");
  }
  std::string how =
      "Samples of thread states: " + std::to_string(std::lround(samples.wait_samples_per_s)) +
      " per second, over all threads";
  if (samples.interval_ns != 0) {
    how += ". Samples of running functions: " +
           std::to_string(std::lround(1e9 / static_cast<double>(samples.interval_ns))) +
           " per second of CPU time";
  }
  print_sentences(out, how + ". The sampling itself used " + fixed_point(100 * samples.cost, 2) +
                           " % of one CPU.");
}

}  // namespace

threads_view read_threads(const std::string& dir, diagnostic_log& diagnostics) {
  threads_view view(read_thread_samples(dir, diagnostics));
  view.groups = activity_of(view.samples, view.stacks);
  view.phases = phases_of(view.samples, view.stacks, view.groups);
  if (!view.groups.empty()) {
    view.chain = wait_chain(view.samples, view.groups, subject_of(view.groups));
    if (view.chain.empty()) {
      diagnostics.warning(dir +
                          ": the samples of the threads contradict each other, so the chain of "
                          "waits is not shown. Please report this with the files .lotus_threads_*");
    }
  }
  if (!has_batches(dir)) {
    view.markers = suggested_markers(view.samples, view.stacks, view.groups);
  }
  return view;
}

void print_threads(const threads_view& view, threads_part part, std::ostream& out) {
  constexpr std::size_t max_groups = 6;
  const std::string headline = headline_of(view.groups, view.chain);
  if (!headline.empty()) {
    out << fitted_sentences(out, headline + '.') << "\n\n";
    print_chain(view, out);
  }
  print_summary(view, out);
  print_use(view, out);
  print_phases(view, out);
  if (part == threads_part::summary) return;
  for (std::size_t i = 0; i < std::min(view.groups.size(), max_groups); ++i) {
    print_group(view.groups[i], view.groups, out);
  }
  print_without_symbols(view.groups, out);
  print_markers(view.markers, out);
  out << '\n';
  print_sampling(view.samples, out);
}

}  // namespace lotus::tool
