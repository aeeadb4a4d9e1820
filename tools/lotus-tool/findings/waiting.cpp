#include "findings/waiting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Returns for each batch the earliest time when a later batch of the same epoch was ready;
/// INT64_MAX if there is no later batch. From then on, a wait for the batch is head-of-line
/// blocking.
std::vector<std::int64_t> later_ready(const run_batches& batches) {
  const std::vector<batch>& all = batches.all();
  std::vector<std::int64_t> first(all.size(), INT64_MAX);
  for (std::size_t i = all.size(); i-- > 1;) {
    if (all[i - 1].epoch != all[i].epoch) continue;
    const std::optional<time_span> made = batches.made(all[i]);
    first[i - 1] = std::min(first[i], made ? made->end_ns : INT64_MAX);
  }
  return first;
}

}  // namespace

double waiting::share() const noexcept {
  return all_ns > 0 ? all_ns / (all_ns + steps_ns) : 0;
}

waiting waits_of(const run_batches& batches, const std::vector<bool>& counted) {
  const std::vector<std::int64_t> ready = later_ready(batches);
  waiting sum;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    if (!counted[i]) continue;
    const batch& b = batches.all()[i];
    sum.steps_ns += static_cast<double>(batches.step_ns(b.consumed).value_or(0));
    const batch_record* const wait = batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    sum.all_ns += static_cast<double>(wait->duration_ns);
    if (ready[i] < wait->end_ns()) {
      sum.behind_others_ns +=
          static_cast<double>(wait->end_ns() - std::max(wait->start_ns, ready[i]));
    }
  }
  return sum;
}

}  // namespace lotus::tool
