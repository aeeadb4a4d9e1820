#include "verdict/waiting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// For every batch, when the first later batch of its epoch lay ready; INT64_MAX for never.
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

double share_of(double waits_ns, double steps_ns) noexcept {
  return waits_ns > 0 ? waits_ns / (waits_ns + steps_ns) : 0;
}

}  // namespace

double waiting::share() const noexcept {
  return share_of(all_ns, steps_ns);
}

double waiting::share_behind_start() const noexcept {
  return share_of(all_ns - at_start_ns, steps_ns - steps_at_start_ns);
}

waiting waits_of(const run_batches& batches, const std::vector<bool>& counted, std::size_t workers,
                 double median_ns) {
  const std::vector<std::int64_t> ready = later_ready(batches);
  waiting sum;
  std::size_t of_epoch = 0;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch& b = batches.all()[i];
    if (i > 0 && batches.all()[i - 1].epoch != b.epoch) of_epoch = 0;
    const bool at_start = of_epoch++ < workers;
    if (!counted[i]) continue;
    const auto step_ns = static_cast<double>(batches.step_ns(b.consumed).value_or(0));
    sum.steps_ns += step_ns;
    if (at_start) sum.steps_at_start_ns += step_ns;
    const batch_record* const wait = batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    const auto ns = static_cast<double>(wait->duration_ns);
    sum.all_ns += ns;
    if (ready[i] < wait->end_ns()) {
      sum.behind_others_ns +=
          static_cast<double>(wait->end_ns() - std::max(wait->start_ns, ready[i]));
    }
    if (at_start) sum.at_start_ns += ns;
    const std::optional<std::int64_t> preprocessed = batches.preprocess_ns(b);
    if (preprocessed && static_cast<double>(*preprocessed) > 2 * median_ns)
      sum.for_stragglers_ns += ns;
  }
  return sum;
}

}  // namespace lotus::tool
