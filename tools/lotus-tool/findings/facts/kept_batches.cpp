#include "findings/facts/kept_batches.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "findings/facts/facts.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {

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
  found.function = function_outside_operations(run, std::move(kept));
  return found;
}

}  // namespace lotus::tool
