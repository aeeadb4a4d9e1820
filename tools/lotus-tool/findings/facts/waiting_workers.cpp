#include "findings/facts/waiting_workers.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "findings/facts/changes.hpp"
#include "findings/facts/facts.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Whether at least half of the samples in which these calls are blocked show a lock.
bool mostly_locked(const blocked_list& list) {
  constexpr std::uint64_t fewest = 5;
  std::uint64_t locked = 0;
  for (const blocked_on& one : list.by) {
    if (one.reason == wait_reason::lock) locked += one.samples;
  }
  return locked >= fewest && 2 * locked >= list.samples;
}

}  // namespace

double slower_by_work(const run_facts& f, const slow_worker& worker) {
  const run_batches& batches = f.run.batches;
  const blocked_list* const list =
      worker.stage.empty() ? &f.d.blocked_on.preprocessing : f.d.blocked_on.of('S' + worker.stage);
  const bool locked = list != nullptr && mostly_locked(*list);
  std::map<std::uint64_t, std::pair<double, double>> work;  // ns and number of batches, by thread
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    const std::string stage =
        s.stage == preprocess_stage ? "" : shown_name(f.run.names.name(s.stage.value()));
    if (stage != worker.stage || !s.file) continue;
    const std::uint64_t thread = f.run.log(*s.file).number;
    const off_cpu_time* const off = f.run.side.off_cpu_of(s.file);
    const bool is_bound = thread == worker.worker && f.run.thread_cpus_of[s.file->value()];
    if (off == nullptr || is_bound) return worker.slower_than;
    const cpu_split split = off->split(s.start_ns, s.end_ns());
    if (!split.run_queue_ns || !split.blocked_ns) return worker.slower_than;
    auto& [sum_ns, count] = work[thread];
    sum_ns += static_cast<double>(split.cpu_ns + (locked ? 0 : *split.blocked_ns));
    ++count;
  }
  double own_ns = 0;
  std::vector<double> others;
  for (const auto& [thread, of] : work) {
    const double mean_ns = of.first / of.second;
    if (thread == worker.worker) {
      own_ns = mean_ns;
    } else {
      others.push_back(mean_ns);
    }
  }
  const double usual_ns = others.empty() ? 0 : quantile(std::move(others), 0.5);
  return usual_ns > 0 ? own_ns / usual_ns : worker.slower_than;
}

}  // namespace lotus::tool
