#include "commands/top/live_runs.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>
#include <utility>

#include "base/diagnostics.hpp"
#include "base/terminal/table.hpp"
#include "commands/top/clock_time.hpp"
#include "findings/diagnosis.hpp"
#include "findings/finding.hpp"
#include "findings/screen/first_screen.hpp"
#include "findings/words.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/lost_records.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

struct live_verdict {
  std::string sentence;
  std::optional<verdict> is;
};

/// Returns the verdict of a diagnosis of the last seconds, and a sentence about it. Returns no
/// verdict if the diagnosis finds a long start-up or batch numbers that contradict each other: the
/// reason may be that the run's beginning is missing. The sentence contains no rates or shares,
/// because the screen shows newer ones next to it.
live_verdict verdict_of(judgement& judged) {
  if (!judged.found) return {"no verdict: " + text_of(judged.why_not), std::nullopt};
  diagnosis& d = *judged.found;
  if (d.is == verdict::start_up_bound || d.has("loaders-mixed") || d.has("negative-delay")) {
    return {"no verdict from the last seconds alone; `lotus-tool diagnose` examines the whole run",
            std::nullopt};
  }
  if (!d.is) return {"no verdict: " + text_of(d.why_silent), std::nullopt};
  const std::string name = std::string(verdict_name(*d.is)) + ": ";
  const finding* const reason = reason_of(d);
  if (reason != nullptr && !reason->to_do.empty()) {
    return {name + text_of(reason->to_do), d.is};
  }
  if (!d.suggestions.empty()) {
    const std::string first = "; change to try: " + d.suggestions.front().what;
    return {std::string(verdict_name(*d.is)) + first, d.is};
  }
  if (*d.is == verdict::balanced)
    return {name + "any one part 1.25x faster gains less than 5 %", d.is};
  if (*d.is == verdict::consumer_bound)
    return {name + "building batches faster would not help", d.is};
  if (!d.limit.empty()) return {name + text_of(d.limit), d.is};
  return {name + "no change is sure to help; `lotus-tool diagnose` examines the whole run", d.is};
}

std::vector<std::string> waits_of(const run_data& run, const run_blocked_on& joined) {
  constexpr double min_blocked = 0.1;
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const op_samples& op : run.ops) {
    const blocked_list* const list = joined.of(op.name);
    if (list == nullptr) continue;
    const std::int64_t total_ns = op.by_file.total_ns();
    const std::optional<cpu_split>& cpu = op.details().cpu;
    const std::optional<std::int64_t> blocked_ns = cpu ? cpu->blocked_ns : std::nullopt;
    std::string text = waiting_text(joined, shown_name(op.name), blocked_ns, total_ns, min_blocked);
    if (!text.empty()) found.emplace_back(blocked_ns.value_or(list->ns), std::move(text));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (auto& [ns, text] : found) texts.push_back(std::move(text));
  return texts;
}

/// Diagnoses the last seconds as if they were a whole run. Sets the verdict only if they contain
/// enough batches.
void judge(const run_files& files, live_run& run) {
  diagnostic_log silent = diagnostic_log::silenced();
  run_parts parts = diagnosis_parts;
  parts.totals = true;
  const run_data read = read_run(files, parts, silent);
  if (run.now.batches < min_batches) {
    run.waits = waits_of(read, join_waits(read, silent));
    return;
  }
  judgement judged = diagnose_run(read, /*skip_batches=*/0, silent);
  run.waits = waits_of(read, judged.found ? judged.found->blocked_on : join_waits(read, silent));
  live_verdict is = verdict_of(judged);
  run.verdict = std::move(is.sentence);
  run.bound = is.is;
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

std::string live_run::title() const {
  std::string text = dir;
  if (!loader.empty()) text += ", loader " + loader;
  if (!consumer.empty()) text += ", host " + consumer;
  return text;
}

std::string live_run::state() const {
  const auto count = [this](ring_state state) {
    return std::count_if(processes.begin(), processes.end(), [&](const seen_process& p) {
      return p.state == state && (pid == 0 || p.pid == pid);
    });
  };
  if (count(ring_state::running) > 0) return "running";
  if (count(ring_state::dead) > 0) return "was killed";
  return has_info_files && !processes_unread() ? "has ended" : "";
}

bool live_run::processes_unread() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const seen_process& p) { return p.state == ring_state::unreadable; });
}

/// Returns how long the longest current wait has lasted so far; 0 if there is none.
std::int64_t live_run::longest_wait_ns() const {
  std::int64_t longest_ns = 0;
  for (const seen_process& p : processes) {
    if (p.state != ring_state::running || (pid != 0 && p.pid != pid)) continue;
    if (p.waiting_since_ns == 0) continue;
    longest_ns = std::max(longest_ns, looked_ns - p.waiting_since_ns);
  }
  return longest_ns;
}

std::string live_run::hang() const {
  const std::string is = state();
  if (is != "running" && !is.empty()) return {};
  constexpr std::int64_t min_ns = 1'000'000'000;
  const std::int64_t long_ns = std::max({min_ns, 5 * usual_gap_ns, 2 * longest_gap_ns});
  const std::int64_t wait_ns = longest_wait_ns();
  const std::int64_t gap_ns = last_batch_ns ? looked_ns - *last_batch_ns : 0;
  if (std::max(wait_ns, gap_ns) < long_ns) return {};
  std::string text = wait_ns >= long_ns ? "the consumer has waited for a batch for " +
                                              human_time(static_cast<double>(wait_ns))
                                        : "no batch for " + human_time(static_cast<double>(gap_ns));
  if (usual_gap_ns > 0) {
    text += " (usually one every " + human_time(static_cast<double>(usual_gap_ns)) + ")";
  }
  return is.empty() ? text + "; it is unknown whether the process still runs" : text;
}

live_runs::live_runs(const std::vector<std::string>& dirs, const std::string& prefix,
                     std::int64_t window_ns) {
  for (const std::string& dir : dirs) {
    folders_.push_back(std::make_unique<live_folder>(dir, prefix, window_ns));
  }
}

void live_runs::look(std::size_t chosen) {
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
      live_run& run = runs_[index_of(empty_run, 0, 0)];
      run.processes = folder->processes(dir);
      run.records = counted_records(empty_run, run_processes::read(dir));
    }
  }
  add_counted_calls(chosen);
  // The clock is read after the records, so that this time is later than the newest record.
  const std::int64_t looked_ns = time_of(CLOCK_REALTIME);
  for (live_run& run : runs_) run.looked_ns = looked_ns;
}

std::size_t live_runs::index_of(const run_files& files, std::uint64_t main, std::uint32_t pid) {
  const auto at = std::find_if(runs_.begin(), runs_.end(), [&](const live_run& run) {
    if (run.dir != files.dir) return false;
    if (pid != 0 && run.pid != 0) return run.pid == pid;
    return run.main == main || main == 0 || run.main == 0;
  });
  if (at != runs_.end()) return static_cast<std::size_t>(at - runs_.begin());
  live_run& run = runs_.emplace_back();
  run.dir = files.dir;
  run.info_dir = files.info_dir;
  run.loader = files.loader;
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
    run_files empty_run;
    empty_run.dir = calls.dir;
    empty_run.info_dir = info_dir;
    if (calls.dir != info_dir) {
      empty_run.loader = decode_name(std::filesystem::path(calls.dir).filename().string());
    }
    return index_of(empty_run, 0, 0);
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
  const std::size_t index = index_of(files, main, pid);
  live_run& run = runs_[index];
  run.has_info_files = folder.has_info_files(run.info_dir);
  run.clock_note = folder.clock_note();
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
