#include "findings/facts/batch_threads.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "findings/facts/facts.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/log_claims.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

/// A loader may start fewer threads than this for other reasons.
constexpr std::size_t fewest_batch_threads = 20;

/// Returns whether the program started about one thread for each of `batches` in the same function,
/// among them at least half of `builders`.
bool starts_as_many(const run_data& run, std::size_t batches,
                    const std::set<std::uint64_t>& builders) {
  const std::string& dir = run.files->info_dir;
  if (!has_thread_samples(dir)) return false;
  diagnostic_log silent = diagnostic_log::silenced();
  const thread_samples samples = read_thread_samples(dir, silent);
  for (const thread_activity& group : activity_of(samples, named_stacks(samples))) {
    const bool as_many = 10 * group.threads >= 9 * batches && 10 * group.threads <= 12 * batches;
    if (group.is_main || group.is_process || !as_many) continue;
    const auto among = std::count_if(
        group.members.begin(), group.members.end(),
        [&](std::size_t member) { return builders.count(samples.threads[member].tid) != 0; });
    if (2 * static_cast<std::size_t>(among) >= builders.size()) return true;
  }
  return false;
}

}  // namespace

batch_threads find_batch_threads(const run_data& run) {
  const run_batches& batches = run.batches;
  std::map<std::uint64_t, std::size_t> built_by;
  batch_threads found;
  for (const batch& b : batches.all()) {
    // Threads that build parts of batches or single items do other work as well.
    if (b.spans != 1) continue;
    const preprocessing_span& s = batches.preprocessing_spans()[b.first_span];
    if (!s.file) continue;
    ++built_by[run.log(*s.file).number];
    found.mean_ns += static_cast<double>(s.duration_ns);
    ++found.batches;
  }
  if (found.batches < fewest_batch_threads || found.batches < batches.all().size()) return {};
  found.mean_ns /= static_cast<double>(found.batches);
  found.threads = built_by.size();
  found.all_known = true;
  if (built_by.size() == found.batches) return found;
  std::set<std::uint64_t> builders;
  for (const auto& [number, built] : built_by) {
    if (number > lotus::detail::largest_thread_id) continue;  // the log of several threads
    if (built > 1) return {};
    builders.insert(number);
  }
  if (builders.size() < fewest_batch_threads || run.files->is_part()) return {};
  found.shares_logs = true;
  found.all_known = starts_as_many(run, found.batches, builders);
  found.threads = found.all_known ? found.batches : builders.size();
  return found;
}

kept_batches find_kept_batches(const run_data& run) {
  std::map<std::uint64_t, std::vector<std::int64_t>> starts;  // of spans, by thread
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) starts[run.log(*s.file).number].push_back(s.start_ns);
  }
  for (auto& [thread, all] : starts) std::sort(all.begin(), all.end());
  kept_batches found;
  double ready_ns = 0;
  std::map<std::uint64_t, intervals> kept;
  for (const batch& b : run.batches.all()) {
    const batch_record* const wait = run.batches.record(b.wait);
    const batch_record* const built = run.batches.record(b.preprocessed);
    if (wait == nullptr || wait->is_marker() || built == nullptr) continue;
    const std::int64_t from_ns = std::max(built->end_ns(), wait->start_ns);
    if (from_ns >= wait->end_ns()) continue;
    ready_ns += static_cast<double>(wait->end_ns() - from_ns);
    const std::uint64_t thread = run.log(built->file).number;
    const std::vector<std::int64_t>& begun = starts[thread];
    const auto next = std::lower_bound(begun.begin(), begun.end(), built->end_ns());
    const std::int64_t until_ns =
        next == begun.end() ? wait->end_ns() : std::min(*next, wait->end_ns());
    if (until_ns <= from_ns) continue;
    kept[thread].push_back({from_ns, until_ns});
    found.share += static_cast<double>(until_ns - from_ns);
    const off_cpu_time* const off = run.side.off_cpu_of(built->file);
    if (off != nullptr)
      found.cpu_share += static_cast<double>(off->split(from_ns, until_ns).cpu_ns);
  }
  if (ready_ns <= 0) return {};
  found.share /= ready_ns;
  found.cpu_share /= ready_ns;
  found.function = function_outside_operations(run, std::move(kept)).shown;
  return found;
}

}  // namespace lotus::tool
