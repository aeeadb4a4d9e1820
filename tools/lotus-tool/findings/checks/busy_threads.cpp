// Compares how many threads of a run were busy at the same time with the number of usable CPUs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "findings/checks/checked_run.hpp"
#include "log/folder/log_files.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {
namespace {

/// Returns the parts of `spans` that are outside of all `holes`. The intervals of each list must be
/// sorted and must not overlap.
intervals without(const intervals& spans, const intervals& holes) {
  intervals rest;
  std::size_t h = 0;
  for (time_span s : spans) {
    while (h < holes.size() && holes[h].end_ns <= s.start_ns) ++h;
    for (std::size_t i = h; i < holes.size() && holes[i].start_ns < s.end_ns; ++i) {
      if (holes[i].start_ns > s.start_ns) rest.push_back({s.start_ns, holes[i].start_ns});
      s.start_ns = holes[i].end_ns;
    }
    if (s.start_ns < s.end_ns) rest.push_back(s);
  }
  return rest;
}

/// Returns the intervals that the operations of one log cover, without operations that lie in an
/// interval of `known`. In a log, an operation comes after the operations inside it, so an
/// operation that overlaps the last intervals of the result is merged with them.
/// @param known  intervals in which the thread is already known to be busy; disjoint, sorted by
///   time.
intervals covered_by_operations(const run_data& run, std::size_t file, const intervals& known) {
  intervals covered;
  // The interval of `known` that contained the last operation. It is checked first, because the
  // next operation usually starts in the same interval.
  auto around = known.begin();
  run.for_each_operation(file, [&](const operation& op) {
    time_span s{op.start_ns, op.end_ns()};
    if (around == known.end() || around->start_ns > s.start_ns || around->end_ns < s.end_ns) {
      const auto next =
          std::upper_bound(known.begin(), known.end(), s.start_ns,
                           [](std::int64_t t, const time_span& k) { return t < k.start_ns; });
      around = next == known.begin() ? known.end() : next - 1;
    }
    if (around != known.end() && around->end_ns >= s.end_ns) return;
    while (!covered.empty() && covered.back().end_ns >= s.start_ns) {
      s.start_ns = std::min(s.start_ns, covered.back().start_ns);
      s.end_ns = std::max(s.end_ns, covered.back().end_ns);
      covered.pop_back();
    }
    covered.push_back(s);
  });
  return covered;
}

/// Returns the intervals in which a thread was off the CPU and spent less than half of the interval
/// in the run queue, so that it was mostly blocked.
intervals blocked_of(const off_cpu_time& off) {
  intervals blocked;
  for (const off_cpu_interval& s : off.intervals()) {
    if (2 * s.run_queue_ns < s.duration_ns()) blocked.push_back({s.start_ns, s.end_ns});
  }
  return blocked;
}

/// Sums up how long threads waited for a CPU.
class queued_time {
 public:
  /// Adds the span `s` of a thread.
  /// @param off  the intervals in which the thread was off the CPU; nullptr if they were not
  ///   recorded.
  void add(const off_cpu_time* off, const time_span& s) {
    all_ns_ += static_cast<double>(s.duration_ns());
    known_ = known_ && off != nullptr;
    if (off == nullptr) return;
    const cpu_split split = off->split(s.start_ns, s.end_ns);
    known_ = known_ && split.run_queue_ns;
    queued_ns_ += static_cast<double>(split.run_queue_ns.value_or(0));
    cpu_ns_ += static_cast<double>(split.cpu_ns);
  }

  double cpu_ns() const noexcept { return cpu_ns_; }

  /// Returns the waits for a CPU divided by the length of all spans; nullopt if not recorded.
  std::optional<double> share() const {
    return known_ && all_ns_ > 0 ? std::optional(queued_ns_ / all_ns_) : std::nullopt;
  }
  /// Returns the share of the spans' time that is neither a wait for a CPU nor CPU time.
  std::optional<double> blocked_share() const {
    return known_ && all_ns_ > 0 ? std::optional(1 - (queued_ns_ + cpu_ns_) / all_ns_)
                                 : std::nullopt;
  }

 private:
  bool known_ = true;
  double cpu_ns_ = 0;
  double queued_ns_ = 0;
  double all_ns_ = 0;
};

using off_cpu_by_thread = std::map<std::uint64_t, const off_cpu_time*>;

const off_cpu_time* find_off_cpu(const off_cpu_by_thread& all, std::uint64_t thread) {
  const auto at = all.find(thread);
  return at == all.end() ? nullptr : at->second;
}

/// Returns the intervals in which each thread was busy, by the number of the thread's log.
/// @param queued  receives all intervals in which a thread worked on a batch, step or operation,
///   including the time in which it was blocked. The result leaves out the blocked time.
std::map<std::uint64_t, intervals> busy_intervals(const run_data& run, queued_time& queued) {
  const std::vector<log_file>& files = run.files->files;
  const run_batches& batches = run.batches;
  off_cpu_by_thread off;
  // Some processes measure time off the CPU only for complete batches and steps, not for the
  // operations inside them.
  off_cpu_by_thread off_of_batches;
  for (std::uint32_t f = 0; f < files.size(); ++f) {
    if (const auto* const of = run.side.off_cpu_of(file_id(f))) off[files[f].number] = of;
    if (const auto* const of = run.side.off_cpu_of(file_id(f), true)) {
      off_of_batches[files[f].number] = of;
    }
  }
  std::map<std::uint64_t, intervals> of_thread;
  std::set<std::uint64_t> consumers;
  for (record_number n = 0; n < batches.records().size(); ++n) {
    const batch_record& r = batches.records()[n];
    const std::uint64_t thread = files[r.file.value()].number;
    if (r.kind == record_kind::preprocessed) {
      of_thread[thread].push_back({r.start_ns, r.end_ns()});
    } else if (r.kind == record_kind::consumed) {
      consumers.insert(thread);
      const std::optional<time_span> step = batches.step(n);
      if (step && off.count(thread) != 0) of_thread[thread].push_back(*step);
    }
  }
  for (std::size_t f = 0; f < files.size(); ++f) {
    const std::uint64_t thread = files[f].number;
    if (!run.has_operations(f) || (consumers.count(thread) != 0 && off.count(thread) == 0))
      continue;
    of_thread[thread] = joined(std::move(of_thread[thread]));
    const intervals covered = covered_by_operations(run, f, of_thread[thread]);
    of_thread[thread].insert(of_thread[thread].end(), covered.begin(), covered.end());
  }
  for (auto& [thread, busy] : of_thread) {
    busy = joined(std::move(busy));
    for (const time_span& s : busy) queued.add(find_off_cpu(off_of_batches, thread), s);
    const off_cpu_time* const known = find_off_cpu(off, thread);
    if (known != nullptr) busy = without(busy, blocked_of(*known));
  }
  return of_thread;
}

}  // namespace

busy_threads count_busy_threads(const run_data& run) {
  busy_threads found;
  if (!run.cpus || run.cpus->count() <= 0) return found;
  found.cpus = run.cpus->count();
  std::vector<std::pair<std::int64_t, int>> changes;
  queued_time queued;
  for (const auto& [thread, busy] : busy_intervals(run, queued)) {
    for (const time_span& s : busy) {
      changes.emplace_back(s.start_ns, 1);
      changes.emplace_back(s.end_ns, -1);
    }
  }
  std::sort(changes.begin(), changes.end());  // sorts ends (-1) before starts (+1) at equal times
  std::size_t now = 0;
  std::int64_t last_ns = 0;
  double any_ns = 0;
  double over_ns = 0;
  for (const auto& [at_ns, change] : changes) {
    const auto ns = static_cast<double>(at_ns - last_ns);
    if (now > 0) any_ns += ns;
    if (static_cast<double>(now) > found.cpus) over_ns += ns;
    now = change > 0 ? now + 1 : now - 1;
    found.most = std::max(found.most, now);
    last_ns = at_ns;
  }
  if (any_ns > 0) found.over_share = over_ns / any_ns;
  // Threads cannot use more CPU time than the CPUs provide. If the logs claim that they did, some
  // waits for a CPU were not recorded, so the share would be wrong.
  if (queued.cpu_ns() <= 1.1 * found.cpus * any_ns) {
    found.queued_share = queued.share();
    found.blocked_share = queued.blocked_share();
  }
  return found;
}

}  // namespace lotus::tool
