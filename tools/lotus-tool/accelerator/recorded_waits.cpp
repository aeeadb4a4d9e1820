#include "accelerator/recorded_waits.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

#include "log/shown_name.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Selects the consumers whose waits are used: those in the processes that the trace contains. If
/// no log comes from one of these processes, selects all consumers.
class counted_consumers {
 public:
  counted_consumers(const run_data& run, const device_trace& trace) : run_(run) {
    std::set<std::uint64_t> processes;
    for (const host_thread& thread : trace.threads) processes.insert(thread.process);
    for (const log_file& file : run.files->files) {
      if (processes.count(file.number) != 0) numbers_.insert(file.number);
    }
  }
  bool count(file_id file) const {
    return numbers_.empty() || numbers_.count(run_.log(file).number) != 0;
  }

 private:
  const run_data& run_;
  std::set<std::uint64_t> numbers_;
};

/// Adds the copies to the device: the scopes and stages of consumers that have the name
/// copy_scope_name. Logs contain both kinds as operations.
void add_copies(const run_data& run, const std::set<std::uint64_t>& consumers, std::int64_t base_ns,
                std::vector<recorded_range>& ranges) {
  for (std::size_t f = 0; f < run.logs.size(); ++f) {
    if (consumers.count(run.files->files[f].number) == 0) continue;
    run.for_each_operation(f, [&](const operation& op) {
      if (shown_name(run.names.name(op.name)) != copy_scope_name) return;
      ranges.push_back({op.start_ns - base_ns, op.end_ns() - base_ns, idle_cause::copy});
    });
  }
}

}  // namespace

recorded_waits find_recorded_waits(const run_data& run, const device_trace& trace) {
  recorded_waits found;
  const counted_consumers counted(run, trace);
  std::set<std::uint64_t> consumers;  // numbers of the consumers' logs
  for (const batch& b : run.batches.all()) {
    const batch_record* const wait = run.batches.record(b.wait);
    if (wait == nullptr || !counted.count(wait->file)) continue;
    consumers.insert(run.log(wait->file).number);
    const std::int64_t start_ns = wait->start_ns - trace.base_ns;
    found.batches.push_back({start_ns, shown_number(b.index), b.epoch});
    if (wait->is_marker()) continue;
    found.ranges.push_back({start_ns, wait->end_ns() - trace.base_ns, idle_cause::batch_wait});
  }
  std::sort(found.batches.begin(), found.batches.end(),
            [](const batch_start& a, const batch_start& b) { return a.at_ns < b.at_ns; });
  add_copies(run, consumers, trace.base_ns, found.ranges);
  sort_by_start(found.ranges);
  // Without waits, the path between two receptions would be the consumer's step.
  if (run.batches.all().empty() || run.batches.consumers() > 1 || !run.batches.waits_known()) {
    return found;
  }
  std::vector<path_activity> activities;
  find_critical_path(run, &activities);
  for (const path_activity& s : activities) {
    path_part& part = found.path.emplace_back();
    part = {s.start_ns - trace.base_ns, s.end_ns - trace.base_ns, {std::nullopt, s.kind}};
    if (s.name) part.activity.name = shown_name(run.names.name(*s.name));
  }
  sort_by_start(found.path);
  return found;
}

}  // namespace lotus::tool
