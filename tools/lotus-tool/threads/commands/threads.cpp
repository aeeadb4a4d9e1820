#include "threads/commands/threads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/description.hpp"
#include "sampling/read/symbols.hpp"
#include "threads/analysis/headline.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

std::string percent_of(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

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

std::string fixed(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);  // NOLINT(*-vararg)
  return text.data();
}

/// Returns a time such as "4.2 s" or "12 ms".
std::string shown_time(double time_s) {
  if (time_s < 0.1) return fixed(1e3 * time_s, time_s < 0.01 ? 1 : 0) + " ms";
  return fixed(time_s, time_s < 10 ? 2 : 1) + " s";
}

void print_summary(const threads_result& result, std::ostream& out) {
  constexpr std::size_t max_groups = 12;
  const std::vector<thread_activity>& groups = result.groups;
  const bool has_times = result.samples.duration_ns > 0;
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
    std::vector<std::string> row{shown_group(group), percent_of(group.running),
                                 percent_of(group.run_queue), percent_of(group.blocked_share())};
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

/// Prints how many CPUs the program used.
void print_use(const thread_samples& samples, std::ostream& out) {
  if (samples.all_cpu_ns == 0 || samples.duration_ns == 0 || samples.cpus == 0) return;
  const double used =
      static_cast<double>(samples.all_cpu_ns) / static_cast<double>(samples.duration_ns);
  out << '\n'
      << fitted_sentences(
             out, "The program used " + fixed(used, 2) + " of " + std::to_string(samples.cpus) +
                      " CPUs on average" +
                      (samples.more_threads == 0 ? "."
                                                 : ". " + std::to_string(samples.more_threads) +
                                                       " of its threads are not shown."))
      << '\n';
}

/// Prints for each phase of the run which threads used the CPUs, if there are several phases.
void print_phases(const threads_result& result, std::ostream& out) {
  if (result.phases.size() < 2) return;
  table phases;
  const std::string of_cpus =
      result.samples.cpus > 0 ? " (of " + std::to_string(result.samples.cpus) + ')' : "";
  phases.row({"phases", "CPUs in use" + of_cpus});
  for (const run_phase& phase : result.phases) {
    const std::string mostly = phase.group ? shown_group(result.groups[*phase.group]) + ", in " +
                                                 shown_place(phase.function)
                                           : "nearly nothing runs";
    phases.row({fixed(phase.begin_s, 2) + " to " + fixed(phase.end_s, 2) + " s: " + mostly,
                fixed(phase.cpus, 2)});
  }
  out << '\n';
  phases.print(out);
}

void print_group(const thread_activity& group, const std::vector<thread_activity>& groups,
                 std::ostream& out) {
  constexpr std::size_t max_parts = 4;
  const auto line = [&out](double share, const std::string& text) {
    std::string percent = percent_of(share);
    percent.insert(0, percent.size() < 6 ? 6 - percent.size() : 0, ' ');
    out << fitted(out, text, "  " + percent + "  ", std::string(10, ' ')) << '\n';
  };
  const auto waits = main_parts(group.blocked, 1, max_parts);
  const auto functions = main_parts(group.functions, group.running, max_parts);
  if (waits.empty() && functions.empty()) return;
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
    line(one.share * group.running, "runs in " + shown_place(one.function));
  }
}

void print_markers(const std::vector<suggested_marker>& markers, std::ostream& out) {
  if (markers.empty()) return;
  out << '\n'
      << fitted_sentences(
             out,
             std::string(
                 "To record times per batch, add these lines, where i is the batch's number") +
                 (markers.front().sure ? "" : " (their places are a guess)") +
                 ". If a line contains the head of a loop, first put the call on a line of its own "
                 "in the loop's body.")
      << '\n';
  for (const suggested_marker& marker : markers) {
    out << "  " << printable_line(marker.at.file) << ':' << marker.at.line << ' '
        << (marker.after ? "after" : "before") << " this line"
        << (is_lambda(marker.at) ? ", inside the lambda: " : ": ") << marker.text << '\n';
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

void print_text(const threads_result& result, std::ostream& out) {
  const thread_samples& samples = result.samples;
  constexpr std::size_t max_groups = 6;
  if (!result.headline.empty()) out << fitted_sentences(out, result.headline + '.') << "\n\n";
  print_summary(result, out);
  print_use(samples, out);
  print_phases(result, out);
  std::size_t shown = 0;
  for (const thread_activity& group : result.groups) {
    if (shown++ < max_groups) print_group(group, result.groups, out);
  }
  print_markers(result.markers, out);
  out << '\n';
  if (samples.interval_ns == 0) {
    out << fitted_sentences(
               out,
               "The functions in which threads run are unknown, because the kernel did not permit "
               "perf_event_open. The shares come from the kernel (/proc/PID/task/TID/schedstat).")
        << '\n';
  }
  constexpr double much_too_late_s = 0.003;
  if (samples.late_s >= much_too_late_s) {
    out << fitted_sentences(
               out, "The machine was busy, so wait samples were taken " +
                        std::to_string(std::lround(1e3 * samples.late_s)) +
                        " ms late on average. Therefore the shares of short waits are too high.")
        << '\n';
  }
  std::string how =
      "Samples of thread states: " + std::to_string(std::lround(samples.wait_samples_per_s)) +
      " per second, over all threads";
  if (samples.interval_ns != 0) {
    how += ". Samples of running functions: " +
           std::to_string(std::lround(1e9 / static_cast<double>(samples.interval_ns))) +
           " per second of CPU time";
  }
  out << fitted_sentences(out, how + ". The sampling itself used " + fixed(100 * samples.cost, 2) +
                                   " % of one CPU.")
      << '\n';
}

}  // namespace

const description<thread_samples>& description_of(const thread_samples*) {
  static const description<thread_samples> all(
      "sampling", "how the program was sampled",
      {
          {"cpu_interval_ns", &thread_samples::interval_ns,
           "CPU time between two samples of a thread; 0: not permitted"},
          {"looks_per_s", &thread_samples::wait_samples_per_s,
           "wait samples per second, of all threads together"},
          {"cost", &thread_samples::cost, "CPU time of the sampling in seconds per second"},
          {"late_s", &thread_samples::late_s,
           "how late wait samples were taken on average, in seconds; then short waits are too "
           "frequent"},
      });
  return all;
}

/// A wait of a group's threads, with all groups.
struct shown_wait_of_group {
  const blocked_part* part = nullptr;
  const std::vector<thread_activity>* groups = nullptr;
};
struct shown_group_of {
  const thread_activity* group = nullptr;
  const std::vector<thread_activity>* groups = nullptr;
};

namespace {

constexpr const char* file_meaning = "source file; absent without debug information";
constexpr const char* line_meaning = "line in the file";

template <class Value>
auto of_group(Value thread_activity::*part) {
  return [part](const shown_group_of& of) { return of.group->*part; };
}

bool is_of_group(const shown_wait_of_group& of) {
  return of.part->of.has_value();
}

}  // namespace

const description<shown_wait_of_group>& description_of(const shown_wait_of_group*) {
  using w = const shown_wait_of_group&;
  const auto has_file = [](w of) { return !of.part->function.file.empty(); };
  static const description<shown_wait_of_group> all(
      "wait", "what the threads of a group waited for",
      {
          {"reason",
           [](w of) {
             return lotus::detail::wait_reason_words[static_cast<std::size_t>(of.part->reason)];
           },
           "kind of the thing", words_of(lotus::detail::wait_reason_words)},
          {"what", [](w of) { return of.part->what; },
           "path or name of the thing; empty if unknown"},
          {"function", [](w of) { return of.part->function.function; },
           "function that waits; empty if unknown"},
          {"callee", [](w of) { return of.part->function.callee; },
           "function that it calls for this; empty if it waits itself"},
          {"module", [](w of) { return of.part->function.module; },
           "path of the program or library of the function"},
          {"file", [](w of) { return of.part->function.file; }, file_meaning, if_any},
          {"line", [](w of) { return of.part->function.line; }, line_meaning, has_file},
          {"share", [](w of) { return of.part->share; }, "share of the group's time"},
          {"waits_for", [](w of) { return (*of.groups)[*of.part->of].start; },
           "start of the group that is waited for; absent if unknown", is_of_group},
          {"waits_for_group", [](w of) { return *of.part->of; }, "index of this group in groups",
           is_of_group},
          {"sure", [](w of) { return of.part->sure; },
           "whether this group was seen to be waited for; otherwise it is probable", is_of_group},
          {"why", [](w of) { return of.part->why; }, "the reason why it is probable",
           [](w of) { return is_of_group(of) && !of.part->sure; }},
          {"outside", [](w of) { return of.part->outside; },
           "whether it waited for input from outside of the recorded program, or for a reader "
           "there"},
      });
  return all;
}

const description<function_share>& description_of(const function_share*) {
  using f = const function_share&;
  static const description<function_share> all(
      "function", "a function that uses the CPU",
      {
          {"name", [](f of) { return of.function.function; }, "name; empty if unknown"},
          {"callee", [](f of) { return of.function.callee; },
           "function or library that it calls and that uses the CPU; empty if it uses it itself"},
          {"module", [](f of) { return of.function.module; }, "path of the program or library"},
          {"file", [](f of) { return of.function.file; }, file_meaning, if_any},
          {"line", [](f of) { return of.function.line; }, line_meaning,
           [](f of) { return !of.function.file.empty(); }},
          {"share", &function_share::share, "share of the group's CPU time"},
      });
  return all;
}

const description<shown_group_of>& description_of(const shown_group_of*) {
  static const description<shown_group_of> all(
      "group", "the threads of one program that began with the same function",
      {
          {"threads", of_group(&thread_activity::threads), "number of threads"},
          {"start", of_group(&thread_activity::start), "function with which the threads began"},
          {"processes", of_group(&thread_activity::processes),
           "number of processes to which the threads belong"},
          {"program", of_group(&thread_activity::program),
           "path of the program that these processes run; empty if unknown"},
          {"looks", of_group(&thread_activity::wait_samples),
           "number of wait samples of the threads"},
          {"cpu_samples", of_group(&thread_activity::cpu_samples),
           "samples of their use of the CPU"},
          {"seconds", of_group(&thread_activity::time_s), "sum of the threads' lifetimes"},
          {"cpu_s", of_group(&thread_activity::cpu_s), "sum of the threads' CPU times in seconds"},
          {"at_once", of_group(&thread_activity::at_once),
           "largest number of the threads that existed at the same time; 0: unknown"},
          {"unsampled", of_group(&thread_activity::unsampled),
           "number of the threads that ended before they were sampled"},
          {"running", of_group(&thread_activity::running),
           "share of this time for which they used a CPU"},
          {"run_queue", of_group(&thread_activity::run_queue),
           "share of this time for which they waited for a CPU"},
          {"blocked",
           [](const shown_group_of& of) {
             std::vector<shown_wait_of_group> waits;
             waits.reserve(of.group->blocked.size());
             for (const blocked_part& part : of.group->blocked) waits.push_back({&part, of.groups});
             return waits;
           },
           "what they waited for; the largest share first"},
          {"functions", of_group(&thread_activity::functions),
           "functions that use the CPU; the largest share first"},
      });
  return all;
}

const description<suggested_marker>& description_of(const suggested_marker*) {
  using m = const suggested_marker&;
  static const description<suggested_marker> all(
      "marker", "a line to add to the program",
      {
          {"file", [](m of) { return of.at.file; }, "source file"},
          {"line", [](m of) { return of.at.line; }, "line of the call"},
          {"function", [](m of) { return of.at.function; }, "function that contains the line"},
          {"place", [](m of) { return of.after ? "after" : "before"; }, "where the marker belongs",
           words{{"before", "after"}}},
          {"text", &suggested_marker::text, "the marker; i stands for the batch's number"},
          {"sure", &suggested_marker::sure,
           "whether the threads were seen to work for the waiting thread"},
      });
  return all;
}

struct shown_hop {
  const chain_hop* hop = nullptr;
  const std::vector<thread_activity>* groups = nullptr;

  const blocked_part* wait() const {
    return hop->wait ? &(*groups)[hop->group].blocked[*hop->wait] : nullptr;
  }
};

const description<shown_hop>& description_of(const shown_hop*) {
  using h = const shown_hop&;
  const auto waits = [](h of) { return of.wait() != nullptr; };
  static const description<shown_hop> all(
      "hop", "what a group's threads did while the group before waited for them",
      {
          {"group", [](h of) { return of.hop->group; }, "index of the group in groups"},
          {"start", [](h of) { return (*of.groups)[of.hop->group].start; }, "start of this group"},
          {"share", [](h of) { return of.hop->share; },
           "share of the previous wait; first, or if seen_together is false: share of its time"},
          {"seen_together", [](h of) { return of.hop->seen; },
           "whether both groups were seen at the same moments"},
          {"waits", [waits](h of) { return waits(of); },
           "whether it waited; otherwise it used a CPU, or waited for one"},
          {"wait", [](h of) { return *of.hop->wait; }, "index of the wait in the group's blocked",
           waits},
      });
  return all;
}

struct shown_phase {
  const run_phase* phase = nullptr;
  const std::vector<thread_activity>* groups = nullptr;
};

const description<shown_phase>& description_of(const shown_phase*) {
  using p = const shown_phase&;
  const auto is_used = [](p of) { return of.phase->group.has_value(); };
  static const description<shown_phase> all(
      "phase", "a part of the run in which the same group used the CPUs most",
      {
          {"begin_s", [](p of) { return of.phase->begin_s; },
           "begin in seconds since the beginning of the recording"},
          {"end_s", [](p of) { return of.phase->end_s; }, "end in seconds"},
          {"cpus", [](p of) { return of.phase->cpus; }, "number of CPUs in use, on average"},
          {"group", [](p of) { return *of.phase->group; },
           "index in groups of the group that used them most; absent if nearly none did", is_used},
          {"share", [](p of) { return of.phase->share; }, "its share of the CPU time", is_used},
          {"function", [](p of) { return of.phase->function.function; },
           "function in which it mostly ran", is_used},
      });
  return all;
}

const description<threads_result>& description_of(const threads_result*) {
  static const description<threads_result> all(
      "threads", "what the threads of a sampled program did",
      {
          {"headline", &threads_result::headline,
           "the result in one or two sentences; empty if too little was seen"},
          {"sampling", &threads_result::samples, "how the program was sampled"},
          {"groups",
           [](const threads_result& of) {
             std::vector<shown_group_of> groups;
             groups.reserve(of.groups.size());
             for (const thread_activity& group : of.groups) groups.push_back({&group, &of.groups});
             return groups;
           },
           "groups of threads of one program that began with the same function; the main thread "
           "first"},
          {"chain",
           [](const threads_result& of) {
             std::vector<shown_hop> hops;
             hops.reserve(of.chain.size());
             for (const chain_hop& hop : of.chain) hops.push_back({&hop, &of.groups});
             return hops;
           },
           "the dominant chain of waits: the main thread first, and last the group that works, "
           "sleeps, or waits for something else"},
          {"phases",
           [](const threads_result& of) {
             std::vector<shown_phase> phases;
             phases.reserve(of.phases.size());
             for (const run_phase& phase : of.phases) phases.push_back({&phase, &of.groups});
             return phases;
           },
           "parts of the run in which different groups used the CPUs most"},
          {"suggested_markers", &threads_result::markers,
           "lines to add to the program for times per batch; empty if unclear"},
      });
  return all;
}

int run_threads(const threads_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  threads_result result;
  result.samples = read_thread_samples(options.dir, diagnostics);
  const thread_samples& samples = result.samples;
  // Files of earlier versions contain no names.
  for (const std::string& module : samples.modules) {
    const bool is_named = !samples.names.empty();
    if (samples.time_ns > 0 && !is_named) report_change(module, samples.time_ns, diagnostics);
  }
  const named_stacks stacks(samples);
  result.groups = activity_of(samples, stacks);
  result.phases = phases_of(samples, stacks, result.groups);
  result.headline = headline_of(samples, result.groups);
  if (!result.groups.empty()) {
    result.chain = wait_chain(samples, result.groups, subject_of(result.groups));
  }
  if (!has_batches(options.dir)) {
    result.markers = suggested_markers(samples, stacks, result.groups);
  }
  if (options.json) {
    print_json(result, out);
  } else {
    print_text(result, out);
  }
  return exit_fine;
}

}  // namespace lotus::tool
