#include "findings/checks/consumers.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Returns the number of threads of one process that wait for batches at the same time; 0 if no
/// process has more than one.
std::size_t threads_at_once(const run_data& run) {
  struct thread_waits {
    consumer_id consumer;
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<file_id, thread_waits> of_file;
  for (const batch_record& r : run.batches.records()) {
    if (r.kind != record_kind::wait || r.is_marker()) continue;
    thread_waits& waits = of_file[r.file];
    waits.consumer = r.consumer;
    waits.first_ns = std::min(waits.first_ns, r.start_ns);
    waits.last_ns = std::max(waits.last_ns, r.end_ns());
  }
  // When the number of waiting threads changes; at the same time, threads end first.
  std::map<consumer_id, std::vector<std::pair<std::int64_t, int>>> changes;
  for (const auto& [file, waits] : of_file) {
    changes[waits.consumer].emplace_back(waits.first_ns, 1);
    changes[waits.consumer].emplace_back(waits.last_ns, -1);
  }
  int most = 0;
  for (auto& [consumer, all] : changes) {
    std::sort(all.begin(), all.end());
    int now = 0;
    for (const auto& [at_ns, by] : all) most = std::max(most, now += by);
  }
  return most > 1 ? static_cast<std::size_t>(most) : 0;
}

/// Returns whether most threads that built several batches did so for several consumers.
bool have_common_builders(const run_data& run) {
  struct built {
    std::size_t batches = 0;
    std::set<file_id> consumers;
  };
  std::map<file_id, built> of_builder;
  for (const batch& b : run.batches.all()) {
    const batch_record* const consumed = run.batches.record(b.consumed);
    if (consumed == nullptr) continue;
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      const optional_file file = run.batches.preprocessing_spans()[n].file;
      if (!file) continue;
      built& of = of_builder[*file];
      ++of.batches;
      of.consumers.insert(consumed->file);
    }
  }
  std::size_t several = 0;
  std::size_t common = 0;
  for (const auto& [file, of] : of_builder) {
    if (of.batches < 2) continue;
    ++several;
    if (of.consumers.size() > 1) ++common;
  }
  return several > 0 && 2 * common > several;
}

}  // namespace

concurrent_consumers find_concurrent_consumers(const run_data& run) {
  concurrent_consumers found{threads_at_once(run)};
  found.share_loader = found.threads > 0 && have_common_builders(run);
  return found;
}

}  // namespace lotus::tool
