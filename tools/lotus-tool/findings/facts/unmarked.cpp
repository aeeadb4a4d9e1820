// What used the CPUs outside of all markers: threads without markers, and the time before the run.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "findings/facts/facts.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "model/run_data.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

std::string busiest_unmarked(const run_data& run) {
  const std::string& dir = run.files->info_dir;
  if (!has_thread_samples(dir)) return {};
  diagnostic_log silent = diagnostic_log::silenced();
  const thread_samples samples = read_thread_samples(dir, silent);
  const named_stacks stacks(samples);
  std::set<std::uint64_t> marked;
  for (const log_file& file : run.files->files) marked.insert(file.number);
  const std::vector<thread_activity> groups = activity_of(samples, stacks);
  const thread_activity* most = nullptr;
  for (const thread_activity& group : groups) {
    std::size_t with_records = 0;
    for (const std::size_t member : group.members) {
      with_records += marked.count(samples.threads[member].tid);
    }
    if (group.is_main || 2 * with_records > group.members.size()) continue;
    if (most == nullptr || group.running * group.time_s > most->running * most->time_s) {
      most = &group;
    }
  }
  if (most == nullptr) return {};
  std::string text = shown_group(*most);
  if (!most->functions.empty()) {
    text += " (mostly " + shown_work(most->functions.front().function) + ')';
  }
  return text;
}

double cpu_before_ns(const run_data& run) {
  if (run.files->window || run.records.whole_from_ns != 0) return 0;
  double sum_ns = 0;
  const run_processes processes = run_processes::read(run.files->info_dir);
  for (const auto& [path, process] : processes.by_file()) {
    if (process.cpu_time.empty() || process.forked != 0) continue;
    const cpu_reading& first = process.cpu_time.front();
    if (first.time_ns <= run.batches.start_ns()) sum_ns += static_cast<double>(first.cpu_ns);
  }
  return sum_ns;
}

}  // namespace lotus::tool
