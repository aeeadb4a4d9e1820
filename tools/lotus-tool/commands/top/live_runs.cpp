#include "commands/top/live_runs.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/finding.hpp"
#include "findings/screen/first_screen.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/lost_records.hpp"
#include "log/operation_names.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// Returns the verdict of a diagnosis of the last seconds. Returns no verdict if the diagnosis
/// finds a long start-up or batch numbers that contradict each other: the reason may be that the
/// run's beginning is missing. The words contain no rates or shares, because the screen shows newer
/// ones next to them.
live_verdict verdict_of(const judgement& judged) {
  const phrase none{"no verdict: "};
  if (!judged.found) return {phrase(none).add(judged.why_not)};
  const diagnosis& d = *judged.found;
  if (d.is == verdict::start_up_bound || d.has("loaders-mixed") || d.has("negative-delay")) {
    return {
        {"no verdict from the last seconds alone; `lotus-tool diagnose` examines the whole run"}};
  }
  if (!d.is) return {phrase(none).add(d.why_silent)};
  live_verdict found{{std::string(verdict_name(*d.is))}, d.is};
  const finding* const reason = reason_of(d);
  if (reason != nullptr && !reason->to_do.empty()) {
    found.words.add(": ").add(reason->to_do);
  } else if (!d.suggestions.empty()) {
    found.words.add("; change to try: %", {name_word{d.suggestions.front().what}});
  } else if (*d.is == verdict::balanced) {
    found.words.add(": any one part 1.25x faster gains less than 5 %%");
  } else if (*d.is == verdict::consumer_bound) {
    found.words.add(claims(d).may_gain_from_building()
                        ? ": the consumer's steps take most of the run"
                        : ": building batches faster would not help");
  } else if (!d.limit.empty()) {
    found.words.add(": ").add(d.limit);
  } else {
    found.words.add(": no change is sure to help; `lotus-tool diagnose` examines the whole run");
  }
  return found;
}

void set_waits(const run_data& run, run_blocked_on joined, live_run& to) {
  const auto ns = [&joined](const live_wait& wait) {
    return wait.blocked_ns.value_or(joined.of(wait.name)->ns);
  };
  to.waits.clear();
  for (const op_samples& op : run.ops) {
    if (joined.of(op.name) == nullptr) continue;
    const std::optional<cpu_split>& cpu = op.details().cpu;
    to.waits.push_back(
        {std::string(op.name), op.by_file.total_ns(), cpu ? cpu->blocked_ns : std::nullopt});
  }
  std::stable_sort(to.waits.begin(), to.waits.end(),
                   [&](const live_wait& a, const live_wait& b) { return ns(a) > ns(b); });
  to.blocked_on = std::move(joined);
}

/// Diagnoses the last seconds as if they were a whole run. Sets the verdict only if they contain
/// enough batches.
void judge(const run_files& files, live_run& run) {
  diagnostic_log silent = diagnostic_log::silenced();
  run_parts parts = diagnosis_parts;
  parts.totals = true;
  const run_data read = read_run(files, parts, silent);
  if (run.now.batches < min_batches) {
    set_waits(read, join_waits(read, silent), run);
    return;
  }
  const judgement judged = diagnose_run(read, /*skip_batches=*/0, silent);
  set_waits(read, judged.found ? judged.found->blocked_on : join_waits(read, silent), run);
  run.verdict = verdict_of(judged);
}

void add_calls(const seen_calls& calls, live_figures& to) {
  const std::string name = calls.name.substr(1);
  const double interval_s = static_cast<double>(calls.interval_ns) / 1e9;
  auto at = std::find_if(to.operations.begin(), to.operations.end(), [&](const live_operation& op) {
    return op.aggregated && op.name == name;
  });
  if (at == to.operations.end()) {
    at = to.operations.insert(at, live_operation{name, 0, 0, 0, 0, 0, true, 0});
  }
  at->calls += calls.count;
  at->self_ns += calls.self_ns;
  at->total_ns += calls.total_ns;
  at->max_ns = std::max(at->max_ns, calls.max_ns);
  // Processes may have begun to count at different times. Since a process made no calls before it
  // began to count, its calls can be divided by the longest interval of all processes.
  at->interval_s = std::max(at->interval_s, interval_s);
  to.aggregated_per_s += static_cast<double>(calls.count) / interval_s;
  if (to.window_s == 0) to.window_s = interval_s;
}

/// Minimum time between two verdicts, as a multiple of the CPU time that the last one took.
constexpr std::int64_t verdict_rest = 200;

}  // namespace

run_state live_run::state() const {
  const auto any = [this](ring_state state, bool of_all) {
    return std::any_of(processes.begin(), processes.end(), [&](const seen_process& p) {
      return p.state == state && (of_all || pid == 0 || p.pid == pid);
    });
  };
  if (any(ring_state::running, false)) return run_state::running;
  if (any(ring_state::dead, false)) return run_state::killed;
  return has_info_files && !any(ring_state::unreadable, true) ? run_state::ended
                                                              : run_state::unknown;
}

std::optional<live_hang> live_run::hang() const {
  const run_state is = state();
  if (is != run_state::running && is != run_state::unknown) return std::nullopt;
  constexpr std::int64_t min_ns = 1'000'000'000;
  const std::int64_t long_ns = std::max({min_ns, 5 * usual_gap_ns, 2 * longest_gap_ns});
  std::int64_t wait_ns = 0;
  for (const seen_process& p : processes) {
    if (p.state != ring_state::running || (pid != 0 && p.pid != pid)) continue;
    if (p.waiting_since_ns != 0) wait_ns = std::max(wait_ns, looked_ns - p.waiting_since_ns);
  }
  if (wait_ns >= long_ns) return live_hang{true, wait_ns};
  const std::int64_t gap_ns = last_batch_ns ? looked_ns - *last_batch_ns : 0;
  return gap_ns >= long_ns ? std::optional(live_hang{false, gap_ns}) : std::nullopt;
}

live_runs::live_runs(const std::vector<std::string>& dirs, const std::string& prefix,
                     std::int64_t window_ns) {
  for (const std::string& dir : dirs) {
    folders_.push_back(std::make_unique<live_folder>(dir, prefix, window_ns));
  }
}

void live_runs::look(std::size_t chosen) {
  // A running process renames and deletes logs, and then the folder is read again. If a process
  // does so all the time, the next update may succeed.
  constexpr int most_times = 5;
  for (int times = 0; times < most_times; ++times) {
    try {
      return look_once(chosen);
    } catch (const vanished_file&) {
    }
  }
}

void live_runs::look_once(std::size_t chosen) {
  now_ns_ = time_of(CLOCK_REALTIME);
  steady_ns_ = time_of(CLOCK_BOOTTIME);
  judging_ns_ = 0;
  for (live_run& run : runs_) {
    run.now = {};
    run.processes.clear();
  }
  for (const auto& folder : folders_) {
    folder->look(now_ns_, steady_ns_);
    std::set<std::string> silent = folder->with_processes();
    for (const run_files& run : folder->runs()) {
      silent.erase(run.info_dir);
      std::vector<consumer_logs> consumers = logs_of_consumers(run);
      for (consumer_logs& one : consumers) {
        one.files.lost_in_rings = run.lost_in_rings;
        const std::vector<log_file>& files = one.files.files;
        const std::uint64_t main =
            consumers.size() == 1 || files.empty() ? 0 : files.front().number;
        update_run(*folder, one.files, main, chosen);
      }
    }
    for (live_run& run : runs_) {
      const std::vector<seen_process> seen = folder->processes(run.info_dir);
      run.processes.insert(run.processes.end(), seen.begin(), seen.end());
      silent.erase(run.info_dir);
    }
    for (const std::string& dir : silent) {  // nothing was recorded in `dir`
      run_files empty_run;
      empty_run.dir = empty_run.info_dir = dir;
      empty_run.lost_in_rings = folder->lost_in_rings(dir);
      live_run& run = runs_[index_of(dir, dir, {})];
      run.processes = folder->processes(dir);
      run.records = counted_records(empty_run, run_processes::read(dir));
    }
  }
  add_counted_calls(chosen);
  // The clock is read after the records, so that this time is later than the newest record.
  const std::int64_t looked_ns = time_of(CLOCK_REALTIME);
  for (live_run& run : runs_) {
    run.looked_ns = looked_ns;
    for (live_batch& batch : run.now.slowest) batch.looked_ns = looked_ns;
  }
}

std::size_t live_runs::index_of(const std::string& dir, const std::string& info_dir,
                                const std::string& loader, std::uint64_t main, std::uint32_t pid) {
  const auto at = std::find_if(runs_.begin(), runs_.end(), [&](const live_run& run) {
    if (run.dir != dir) return false;
    if (pid != 0 && run.pid != 0) return run.pid == pid;
    return run.main == main || main == 0 || run.main == 0;
  });
  if (at != runs_.end()) return static_cast<std::size_t>(at - runs_.begin());
  live_run& run = runs_.emplace_back();
  run.dir = dir;
  run.info_dir = info_dir;
  run.loader = loader;
  run.main = main;
  return runs_.size() - 1;
}

/// Returns the index of the run that aggregated calls belong to. If a folder has several consumers,
/// this is the run of the process that made the calls, or of its nearest ancestor that is a
/// consumer.
std::size_t live_runs::index_of_calls(const seen_calls& calls, const std::string& info_dir,
                                      const run_processes& processes) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].dir == calls.dir) candidates.push_back(i);
  }
  if (candidates.empty()) {  // nothing was recorded in this folder
    const std::string folder = std::filesystem::path(calls.dir).filename().string();
    return index_of(calls.dir, info_dir, calls.dir == info_dir ? "" : decode_name(folder));
  }
  if (candidates.size() == 1) return candidates.front();
  constexpr int max_generations = 64;
  const process_info* process = processes.process_named(calls.ring);
  for (int i = 0; process != nullptr && i < max_generations; ++i) {
    for (const std::size_t index : candidates) {
      if (runs_[index].pid == process->pid) return index;
    }
    process = processes.parent_of(*process);
  }
  return candidates.front();
}

/// Adds the aggregated calls of each process to the operations of its run.
void live_runs::add_counted_calls(std::size_t chosen) {
  std::set<std::pair<std::string, std::string>> counted_rings;
  for (const auto& folder : folders_) {
    std::set<std::string> dirs = folder->with_processes();
    for (const live_run& run : runs_) dirs.insert(run.info_dir);
    for (const std::string& dir : dirs) {
      const std::vector<seen_calls> all = folder->calls(dir);
      if (all.empty()) continue;
      std::set<std::pair<std::string, std::string>> rings;
      const run_processes processes = run_processes::read(dir);
      for (const seen_calls& calls : all) {
        if (counted_rings.count({dir, calls.ring}) != 0) continue;
        rings.emplace(dir, calls.ring);
        const std::size_t index = index_of_calls(calls, dir, processes);
        live_run& run = runs_[index];
        if (run.processes.empty()) run.processes = folder->processes(dir);
        if (index == chosen) add_calls(calls, run.now);
      }
      counted_rings.merge(rings);
    }
  }
}

bool live_runs::needs_second_reading() const {
  return std::any_of(folders_.begin(), folders_.end(),
                     [](const auto& folder) { return folder->needs_second_reading(); });
}

void live_runs::update_run(const live_folder& folder, const run_files& files, std::uint64_t main,
                           std::size_t chosen) {
  const run_processes processes = run_processes::read(files.info_dir, files.earlier_info);
  const process_info* const process =
      files.files.empty() ? nullptr : processes.process_of(files.files.front().number);
  const auto pid = process == nullptr ? 0 : static_cast<std::uint32_t>(process->pid);
  const std::size_t index = index_of(files.dir, files.info_dir, files.loader, main, pid);
  live_run& run = runs_[index];
  run.has_info_files = folder.has_info_files(run.info_dir);
  run.clock_set_ns = folder.clock_set_ns();
  run.main = main;
  run.pid = pid;
  run.consumer = process == nullptr ? "" : process->title();
  diagnostic_log silent = diagnostic_log::silenced();
  run_parts wanted;
  wanted.totals = index == chosen;
  const consumer_times consumer = consumer_times_of(files, folder.begin_ns());
  {
    // Freed before the verdict, which reads the logs again.
    const run_data read = read_run(files, wanted, silent);
    run.records = read.records;
    run.now = figures_of_interval(read, consumer, folder.begin_ns(), folder.end_ns());
  }
  if (run.now.last_batch_ns) run.last_batch_ns = run.now.last_batch_ns;
  run.usual_gap_ns = run.now.usual_gap_ns.value_or(run.usual_gap_ns);
  run.longest_gap_ns = std::max(run.longest_gap_ns, run.now.longest_gap_ns.value_or(0));
  if (index != chosen || steady_ns_ < run.next_verdict_ns) return;
  const std::int64_t before_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
  judge(files, run);
  run.verdict_ns = now_ns_;
  judging_ns_ = time_of(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
  run.next_verdict_ns = steady_ns_ + verdict_rest * judging_ns_;
}

}  // namespace lotus::tool
