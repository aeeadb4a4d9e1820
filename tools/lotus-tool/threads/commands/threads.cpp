#include "threads/commands/threads.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "describe/description.hpp"
#include "threads/analysis/run_phases.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/view/headline.hpp"

namespace lotus::tool {

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

/// Returns parts of the result, each with all groups.
template <class Shown, class Part>
std::vector<Shown> with_groups(const std::vector<Part>& parts,
                               const std::vector<thread_activity>& groups) {
  std::vector<Shown> shown;
  shown.reserve(parts.size());
  for (const Part& part : parts) shown.push_back({&part, &groups});
  return shown;
}

template <class Value>
auto of_group(Value thread_activity::*part) {
  return [part](const shown_group_of& of) { return of.group->*part; };
}

bool is_of_group(const shown_wait_of_group& of) {
  return of.part->of.has_value();
}

/// Returns the folder that contains the samples of a run's threads. If `dir` is the folder of one
/// of its loaders, this is the folder above, because the samples do not tell loaders apart.
std::string folder_with_samples(const std::string& dir, diagnostic_log& diagnostics) {
  std::string above = (std::filesystem::path(dir) / "..").lexically_normal().string();
  const bool is_part = std::filesystem::is_directory(dir) && has_thread_samples(above);
  if (has_thread_samples(dir) || !is_part) return dir;
  diagnostics.note(dir +
                   ": the samples are of all loaders of the program, so these are all its threads");
  return above;
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
             return with_groups<shown_wait_of_group>(of.group->blocked, *of.groups);
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
          {"place", [](m of) { return of.is_after() ? "after" : "before"; },
           "where the marker belongs", words{{"before", "after"}}},
          {"text", [](m of) { return of.text(); }, "the marker; i stands for the batch's number"},
          {"header", [](m of) { return of.header(); },
           "header that the file must include; lotus/lotus.h in a C program"},
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
          {"seconds", [](h of) { return of.hop->time_s; },
           "this share in seconds, summed over the threads; at most as long as they existed"},
          {"begin_s", [](h of) { return of.hop->begin_s; },
           "when it was first seen after the hops before, in seconds since the beginning"},
          {"end_s", [](h of) { return of.hop->end_s; }, "when it was last seen; 0: not so"},
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

const description<threads_view>& description_of(const threads_view*) {
  using t = const threads_view&;
  static const description<threads_view> all(
      "threads", "what the threads of a sampled program did",
      {
          {"headline", [](t of) { return headline_of(of.groups, of.chain); },
           "the result in one or two sentences; empty if too little was seen"},
          {"sampling", &threads_view::samples, "how the program was sampled"},
          {"groups", [](t of) { return with_groups<shown_group_of>(of.groups, of.groups); },
           "groups of threads of one program that began with the same function; the main thread "
           "first"},
          {"chain", [](t of) { return with_groups<shown_hop>(of.chain, of.groups); },
           "the dominant chain of waits: the main thread first, and last the group that works, "
           "sleeps, or waits for something else"},
          {"phases", [](t of) { return with_groups<shown_phase>(of.phases, of.groups); },
           "parts of the run in which different groups used the CPUs most"},
          {"suggested_markers", &threads_view::markers,
           "lines to add to the program for times per batch; empty if unclear"},
      });
  return all;
}

int run_threads(const threads_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const threads_view view =
      read_threads(folder_with_samples(options.dir, diagnostics), diagnostics);
  if (options.json) {
    print_json(view, out);
  } else {
    print_threads(view, threads_part::all, out);
  }
  return exit_fine;
}

}  // namespace lotus::tool
