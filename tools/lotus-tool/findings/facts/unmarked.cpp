// What used the CPUs outside of all markers: threads without markers, and what the program did
// before and after the run.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "lotus/folder/log_claims.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/started_threads.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

/// Returns the samples of the program's threads; nullopt if there are none, or only a part of the
/// run is read. What is wrong with a damaged file, `lotus-tool threads` says.
std::optional<thread_samples> samples_of(const run_data& run) {
  const std::string& dir = run.files->info_dir;
  if (run.files->is_part() || !has_thread_samples(dir)) return std::nullopt;
  diagnostic_log silent = diagnostic_log::silenced();
  try {
    return read_thread_samples(dir, silent);
  } catch (const input_error&) {
    return std::nullopt;
  }
}

/// Returns where in the program most of the counted CPU samples were: the most frequent place of
/// the most frequent function; nullopt if there are none.
/// @param counted  double(const thread_sample&): how often a sample counts.
/// @param least  the share (0..1) of the samples that the function must have.
template <class Counted>
std::optional<source_place> busiest_place(const thread_samples& samples, const named_stacks& stacks,
                                          Counted&& counted, double least = 0) {
  const std::string program = samples.processes.empty() ? "" : samples.processes[0].program;
  std::map<std::string, double> functions;
  std::map<std::string, std::map<source_place, double>> places;  // of each function
  double all = 0;
  for (const thread_sample& s : samples.samples) {
    const double count = s.waits || stacks.of(s.stack).empty() ? 0 : counted(s);
    all += count;
    if (count <= 0) continue;
    const source_place place = working_place(stacks.of(s.stack), program);
    functions[place.function] += count;
    places[place.function][place] += count;
  }
  const auto most = most_frequent(functions);
  if (most == functions.end() || most->second < least * all) return std::nullopt;
  return most_frequent(places[most->first])->first;
}

/// Returns the function in which most of the counted CPU samples were; "" if there are none.
template <class Counted>
std::string busiest_function(const thread_samples& samples, const named_stacks& stacks,
                             Counted&& counted, double least = 0) {
  const auto place = busiest_place(samples, stacks, std::forward<Counted>(counted), least);
  return place ? shown_work(*place) : std::string();
}

/// Returns the function in which the program used most CPU time during a span of the time since
/// 1970; "" if that was not sampled.
std::string busiest_function(const thread_samples& samples, const named_stacks& stacks,
                             time_span span) {
  const std::int64_t first_ns = samples.time_ns - static_cast<std::int64_t>(samples.duration_ns);
  return busiest_function(samples, stacks, [&](const thread_sample& s) {
    const auto within = std::count_if(s.at_ms.begin(), s.at_ms.end(), [&](std::uint32_t at_ms) {
      const std::int64_t at_ns = first_ns + std::int64_t{1'000'000} * at_ms;
      return at_ns >= span.start_ns && at_ns < span.end_ns;
    });
    return within == 0 ? 0.0
                       : static_cast<double>(s.count) * static_cast<double>(within) /
                             static_cast<double>(s.at_ms.size());
  });
}

/// Adds the consumer's steps, by the number of its log.
void add_steps(const run_data& run, std::map<std::uint64_t, intervals>& times) {
  for (const batch& b : run.batches.all()) {
    const batch_record* const of = run.batches.record(b.consumed);
    const std::optional<time_span> step = run.batches.step(b.consumed);
    if (of != nullptr && step) times[run.log(of->file).number].push_back(*step);
  }
}

/// Adds the times in which batches were being built, by the numbers of the threads' logs.
void add_preprocessings(const run_data& run, std::map<std::uint64_t, intervals>& times) {
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) times[run.log(*s.file).number].push_back({s.start_ns, s.end_ns()});
  }
}

/// The times in which threads with records did recorded work, by thread id, sorted.
std::map<std::uint64_t, intervals> recorded_times(const run_data& run) {
  std::map<std::uint64_t, intervals> times;
  add_preprocessings(run, times);
  add_steps(run, times);
  for (auto& [thread, all] : times) all = joined(std::move(all));
  return times;
}

/// Returns what threads with records do outside of these, if samples show it.
unmarked_use busiest_between_records(const run_data& run, const thread_samples& samples,
                                     const named_stacks& stacks) {
  constexpr double fewest = 10;
  const std::map<std::uint64_t, intervals> recorded = recorded_times(run);
  const std::int64_t first_ns = samples.time_ns - static_cast<std::int64_t>(samples.duration_ns);
  const auto outside = [&](const thread_sample& s) {
    const auto of = recorded.find(samples.threads[s.thread].tid);
    if (of == recorded.end() || s.at_ms.empty()) return 0.0;
    const auto n = std::count_if(s.at_ms.begin(), s.at_ms.end(), [&](std::uint32_t at_ms) {
      const std::int64_t at_ns = first_ns + std::int64_t{1'000'000} * at_ms;
      return covered(of->second, at_ns, at_ns + 1'000'000) < 0.5e6;
    });
    return static_cast<double>(s.count) * static_cast<double>(n) /
           static_cast<double>(s.at_ms.size());
  };
  std::vector<double> of_thread(samples.threads.size());
  for (const thread_sample& s : samples.samples) {
    if (!s.waits) of_thread[s.thread] += outside(s);
  }
  unmarked_use most{true};
  double most_samples = fewest;
  for (thread_activity& group : activity_of(samples, stacks)) {
    double sum = 0;
    for (const std::size_t member : group.members) sum += of_thread[member];
    if (sum < most_samples) continue;
    most_samples = sum;
    most.group = std::move(group);
  }
  if (most.group.members.empty()) return most;
  most.function = busiest_function(samples, stacks, [&](const thread_sample& s) {
    return most.group.members.count(s.thread) == 0 ? 0.0 : outside(s);
  });
  return most;
}

/// Returns the stage before which batches stay longest, if `between_stages`; else the first one.
std::optional<stage_id> stage_after_gap(const run_batches& batches, bool between_stages) {
  std::map<stage_id, double> gaps;
  for (const batch& b : batches.all()) {
    const auto first =
        batches.preprocessing_spans().begin() + static_cast<std::ptrdiff_t>(b.first_span);
    std::vector<preprocessing_span> spans(first, first + static_cast<std::ptrdiff_t>(b.spans));
    std::sort(spans.begin(), spans.end(),
              [](const auto& a, const auto& c) { return a.start_ns < c.start_ns; });
    if (spans.empty()) continue;
    if (!between_stages) ++gaps[spans.front().stage];
    std::int64_t end_ns = spans.front().end_ns();
    for (const preprocessing_span& s : spans) {
      if (between_stages && s.start_ns > end_ns) {
        gaps[s.stage] += static_cast<double>(s.start_ns - end_ns);
      }
      end_ns = std::max(end_ns, s.end_ns());
    }
  }
  const auto most = most_frequent(gaps);
  return most == gaps.end() ? std::nullopt : std::optional(most->first);
}

/// Whether a function of the C or C++ library reads a file, a pipe or a socket.
bool is_read_call(std::string_view function) {
  static constexpr std::array<std::string_view, 16> names{
      "read",           "__read",  "__libc_read", "pread",     "pread64", "__pread64",
      "__libc_pread64", "readv",   "__readv",     "fread",     "fgets",   "_IO_fread",
      "_IO_file_read",  "getline", "getdelim",    "__getdelim"};
  static constexpr std::array<std::string_view, 3> methods{"istream::read", "ifstream::read",
                                                           "::getline"};
  return std::find(names.begin(), names.end(), function) != names.end() ||
         std::any_of(methods.begin(), methods.end(), [&](std::string_view method) {
           return function.find(method) != std::string_view::npos;
         });
}

/// Returns the function that has at least half of the CPU samples that count; "" if these are few.
/// @param counts  bool(const thread_sample&, std::int64_t): whether a sample at this time counts.
template <class Counts>
busy_function busiest_function(const thread_samples& samples, Counts&& counts) {
  constexpr double fewest = 10;
  const std::int64_t first_ns = samples.time_ns - static_cast<std::int64_t>(samples.duration_ns);
  double all = 0;
  const std::optional<source_place> place = busiest_place(
      samples, named_stacks(samples),
      [&](const thread_sample& s) {
        const auto n = std::count_if(s.at_ms.begin(), s.at_ms.end(), [&](std::uint32_t at_ms) {
          return counts(s, first_ns + std::int64_t{1'000'000} * at_ms);
        });
        all += static_cast<double>(n);
        return static_cast<double>(n);
      },
      0.5);
  if (!place || all < fewest) return {};
  return {shown_work(*place), is_read_call(place->callee)};
}

}  // namespace

busy_function function_outside_operations(const run_data& run,
                                          std::map<std::uint64_t, intervals> spans) {
  const std::optional<thread_samples> samples = samples_of(run);
  if (!samples) return {};
  std::map<std::uint64_t, intervals> operations;
  for (auto& [number, all] : spans) all = joined(std::move(all));
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    const std::uint64_t number = run.files->files[file].number;
    if (spans.count(number) == 0 || !run.has_operations(file)) continue;
    intervals& all = operations[number];
    run.for_each_operation(file, [&](const operation& op) {
      all.push_back({op.start_ns, op.end_ns()});
    });
    all = joined(std::move(all));
  }
  return busiest_function(*samples, [&](const thread_sample& s, std::int64_t at_ns) {
    const std::uint64_t number = samples->threads[s.thread].tid;
    const auto own = spans.find(number);
    return own != spans.end() && covered(own->second, at_ns, at_ns + 1'000'000) >= 0.5e6 &&
           covered(operations[number], at_ns, at_ns + 1'000'000) < 0.5e6;
  });
}

std::string function_in_steps(const run_data& run) {
  std::map<std::uint64_t, intervals> steps;
  add_steps(run, steps);
  return function_outside_operations(run, std::move(steps)).shown;
}

std::string function_between_epochs(const run_data& run) {
  return function_outside_operations(run, consumers_between_epochs(run)).shown;
}

std::string function_in_batches(const run_data& run) {
  std::map<std::uint64_t, intervals> batches;
  add_preprocessings(run, batches);
  return function_outside_operations(run, std::move(batches)).shown;
}

std::string function_that_reads(const run_data& run) {
  const std::optional<thread_samples> samples = samples_of(run);
  if (!samples) return {};
  std::set<std::uint64_t> builders;
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) builders.insert(run.log(*s.file).number);
  }
  busy_function most = busiest_function(*samples, [&](const thread_sample& s, std::int64_t) {
    return builders.count(samples->threads[s.thread].tid) > 0;
  });
  return most.reads ? std::move(most.shown) : std::string();
}

void name_running_holders(const run_data& run, run_blocked_on& joined) {
  std::vector<blocked_on*> locks;
  const auto look_at = [&locks](blocked_list& list) {
    for (blocked_on& one : list.by) {
      if (one.holder_thread != 0 && one.held_in.empty()) locks.push_back(&one);
    }
  };
  for (auto& [name, list] : joined.ops) look_at(list);
  look_at(joined.preprocessing);
  look_at(joined.steps);
  if (locks.empty()) return;
  const std::optional<thread_samples> samples = samples_of(run);
  if (!samples) return;
  for (blocked_on* const one : locks) {
    one->runs_in = busiest_function(*samples, [&](const thread_sample& s, std::int64_t) {
                     return samples->threads[s.thread].tid == one->holder_thread;
                   }).shown;
  }
}

std::string function_in_first_waits(const run_facts& f) {
  const std::optional<thread_samples> samples = samples_of(f.run);
  if (!samples) return {};
  const intervals waits = joined(f.waits.first_spans);
  return busiest_function(*samples,
                          [&](const thread_sample&, std::int64_t at_ns) {
                            return covered(waits, at_ns, at_ns + 1'000'000) >= 0.5e6;
                          })
      .shown;
}

namespace {

/// Returns how long threads were blocked between two batches or items of a stage; nullopt if it is
/// unknown.
std::optional<double> blocked_between_batches(const run_data& run, stage_id stage) {
  std::map<file_id, intervals> of_file;
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.stage == stage && s.file) of_file[*s.file].push_back({s.start_ns, s.end_ns()});
  }
  double sum_ns = 0;
  for (auto& [file, spans] : of_file) {
    const off_cpu_time* const off = run.side.off_cpu_of(file);
    if (off == nullptr) return std::nullopt;
    spans = joined(std::move(spans));
    for (std::size_t i = 1; i < spans.size(); ++i) {
      const cpu_split gap = off->split(spans[i - 1].end_ns, spans[i].start_ns);
      if (!gap.blocked_ns) return std::nullopt;
      sum_ns += static_cast<double>(*gap.blocked_ns);
    }
  }
  return sum_ns;
}

}  // namespace

std::optional<sleeping_threads> asleep_between_batches(const run_facts& f) {
  constexpr std::uint64_t fewest = 10;
  const std::optional<stage_id> stage = stage_after_gap(f.run.batches, f.waits.is_between());
  const auto& lists = f.d.blocked_on.between_batches;
  const auto list = stage ? lists.find(*stage) : lists.end();
  if (list == lists.end()) return std::nullopt;
  std::uint64_t asleep = 0;
  sleeping_threads found;
  for (const blocked_on& one : list->second.by) {
    if (one.reason != wait_reason::sleep) continue;
    if (found.place.empty()) found.place = own_calls(one);
    asleep += one.samples;
    found.asleep_ns += static_cast<double>(one.ns);
  }
  const bool hardly_else = 5 * asleep >= 4 * list->second.samples;
  if (asleep < (hardly_else ? fewest / 2 : fewest) || 2 * asleep < list->second.samples ||
      found.asleep_ns < 0.5 * f.waits.idle_ns()) {
    return std::nullopt;
  }
  std::set<std::uint64_t> threads;
  double busy_ns = 0;
  for (const preprocessing_span& s : f.run.batches.preprocessing_spans()) {
    if (s.stage != *stage || !s.file) continue;
    threads.insert(f.run.log(*s.file).number);
    busy_ns += static_cast<double>(s.duration_ns);
  }
  const double share = static_cast<double>(asleep) / static_cast<double>(list->second.samples);
  // The times of samples are estimates. The threads' blocked time between batches was measured.
  if (const std::optional<double> blocked_ns = blocked_between_batches(f.run, *stage)) {
    found.asleep_ns = share * *blocked_ns;
  }
  const double rest_ns = std::max(0.0, f.run_ns * static_cast<double>(threads.size()) - busy_ns);
  found.asleep_ns = std::min(found.asleep_ns, share * rest_ns);
  const bool named = !f.d.stages.empty() && *stage != preprocess_stage;
  found.of = threads.size() == 1 ? "the thread" : "the threads";
  found.of += named ? " of " + shown_name(f.run.names.name(stage->value())) : " that build batches";
  if (!named && threads.size() == 1) found.of = "the thread that builds batches";
  return found;
}

namespace {

/// Returns the names of the program's other loaders, by the numbers of the threads that have
/// records in them.
std::map<std::uint64_t, std::string> loaders_of_threads(const run_files& run) {
  std::map<std::uint64_t, std::string> found;
  for (const log_file& side : run.elsewhere) {
    const std::string folder = fs::path(side.path).parent_path().filename().string();
    if (fs::path(side.path).parent_path() != run.info_dir) {
      found[side.number] = printable(decode_name(folder));
    }
  }
  return found;
}

}  // namespace

std::optional<unmarked_use> busiest_unmarked(const run_data& run, const run_facts& f) {
  const std::optional<thread_samples> read = samples_of(run);
  if (!read) return {};
  const thread_samples& samples = *read;
  const named_stacks stacks(samples);
  std::set<std::uint64_t> marked;
  for (const log_file& file : run.files->files) marked.insert(file.number);
  const std::map<std::uint64_t, std::string> loaders = loaders_of_threads(*run.files);
  unmarked_use most;
  double most_ns = 0;
  for (thread_activity& group : activity_of(samples, stacks)) {
    // Threads with and without records may have begun in the same function.
    std::set<std::size_t> unmarked;
    std::map<std::string, double> of_loader;
    double unmarked_ns = 0;
    double all_ns = 0;
    for (const std::size_t member : group.members) {
      const auto cpu_ns = static_cast<double>(samples.threads[member].cpu_ns);
      all_ns += cpu_ns;
      if (marked.count(samples.threads[member].tid) != 0) continue;
      unmarked_ns += cpu_ns;
      unmarked.insert(member);
      const auto loader = loaders.find(samples.threads[member].tid);
      of_loader[loader == loaders.end() ? std::string() : loader->second] += cpu_ns;
    }
    double ns = all_ns <= 0 ? 0 : group.running * group.time_s * 1e9 * unmarked_ns / all_ns;
    // The main thread probably did what was done outside of the run.
    if (group.is_main) ns -= f.before.cpu_ns + f.after.cpu_ns;
    if (ns <= most_ns) continue;
    most.others_marked = group.members.size() > unmarked.size();
    most.loader = most_frequent(of_loader)->first;
    most.group = std::move(group);
    most.group.threads = unmarked.size();
    most.group.members = std::move(unmarked);
    most_ns = ns;
  }
  if (most_ns <= 0 || most_ns < 0.5 * f.unmarked_cpus * f.run_ns) {
    return busiest_between_records(run, samples, stacks);
  }
  most.function = busiest_function(samples, stacks, [&most](const thread_sample& s) {
    return most.group.members.count(s.thread) == 0 ? 0.0 : static_cast<double>(s.count);
  });
  return most;
}

phrase words_of(const unmarked_use& use) {
  if (use.have_markers && use.function.empty()) return {"threads that also have markers"};
  const std::string group = use.group.is_main ? "the main thread" : shown_group(use.group);
  if (use.have_markers) {
    return {"% outside of their markers (mostly %)", {name_word{group}, name_word{use.function}}};
  }
  if (!use.loader.empty()) {
    phrase of{"% of the loader %", {name_word{group}, name_word{use.loader}}};
    return use.function.empty() ? of : of.add(" (mostly %)", {name_word{use.function}});
  }
  phrase text{use.others_marked ? "% without markers" : "%", {name_word{group}}};
  return use.function.empty() ? text : text.add(" (mostly %)", {name_word{use.function}});
}

short_threads started_threads_of(const run_data& run, const run_facts& f) {
  const std::optional<thread_samples> read = samples_of(run);
  if (!read) return {};
  const thread_samples& samples = *read;
  short_threads found;
  for (const thread_activity& group : activity_of(samples, named_stacks(samples))) {
    if (group.is_main || group.is_process || group.threads <= found.count) continue;
    found.count = group.threads;
    found.shown = shown_group(group);
    found.cpu_ns = group.cpu_s * 1e9 / static_cast<double>(group.threads);
  }
  // Starting a thread and ending it takes about this long on current machines.
  constexpr double start_ns = 5e4;
  constexpr double worth_naming = 0.1;
  const auto count = static_cast<double>(found.count);
  const bool is_much = count * start_ns >= worth_naming * f.run_ns && found.cpu_ns < 20 * start_ns;
  return is_much && found.count >= 2 * run.batches.all().size() ? found : short_threads{};
}

void add_outside_work(const run_data& run, run_facts& f) {
  if (run.files->is_part() || run.records.whole_from_ns != 0) return;
  const time_span before{0, run.batches.start_ns()};
  time_span after{before.end_ns + run.batches.length_ns(), 0};
  const std::string& dir = run.files->info_dir;
  const run_processes processes = run_processes::read(dir);
  for (const auto& [path, process] : processes.by_file()) {
    if (process.cpu_time.empty() || process.forked != 0) continue;
    const cpu_reading& first = process.cpu_time.front();
    if (first.time_ns <= before.end_ns) f.before.cpu_ns += static_cast<double>(first.cpu_ns);
    after.end_ns = std::max(after.end_ns, process.cpu_time.back().time_ns);
  }
  if (after.end_ns > after.start_ns) {
    f.after.cpu_ns = processes.cpu_time().between(after.start_ns, after.end_ns).value_or(0);
  }
  constexpr double worth_naming_ns = 1e8;
  if (std::max(f.before.cpu_ns, f.after.cpu_ns) < worth_naming_ns) return;
  const std::optional<thread_samples> samples = samples_of(run);
  if (!samples) return;
  const std::int64_t began_ns = samples->time_ns - static_cast<std::int64_t>(samples->duration_ns);
  if (samples->duration_ns > 0) {
    f.before.all_ns = std::max(0.0, static_cast<double>(before.end_ns - began_ns));
  }
  const named_stacks stacks(*samples);
  f.before.function = busiest_function(*samples, stacks, before);
  f.after.function = busiest_function(*samples, stacks, after);
}

}  // namespace lotus::tool
