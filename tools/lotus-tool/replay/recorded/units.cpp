#include "replay/recorded/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "model/pipeline/items.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

void put_into_order(std::vector<found_unit>& epoch, std::size_t threads) {
  std::sort(epoch.begin(), epoch.end(), [](const found_unit& a, const found_unit& b) {
    return std::tie(b.of_item, a.start_ns, a.batch) < std::tie(a.of_item, b.start_ns, b.batch);
  });
  if (!epoch.empty() && epoch.front().of_item) return;
  std::vector<found_unit> by_number = epoch;
  std::sort(by_number.begin(), by_number.end(), [](const found_unit& a, const found_unit& b) {
    return a.batch < b.batch;  // within an epoch, ids of batches are in the order of batch numbers
  });
  std::map<batch_id, std::size_t> began;
  for (std::size_t i = 0; i < epoch.size(); ++i) began[epoch[i].batch] = i;
  const std::size_t farthest = 4 * threads;
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    const std::size_t at = began[by_number[i].batch];
    if (at > i + farthest || i > at + farthest) return;
  }
  epoch = std::move(by_number);
}

}  // namespace

std::vector<std::vector<found_unit>> units_of(const run_batches& batches,
                                              const std::function<bool(span_number)>& is_used,
                                              std::size_t threads) {
  std::map<std::uint32_t, std::vector<found_unit>> by_epoch;
  std::vector<bool> has_own(batches.all().size());
  std::vector<bool> has_items(batches.all().size());
  for (const item& it : items_of(batches)) {
    found_unit u;
    u.of_item = it.of_item;
    for (const span_number n : it.spans) {
      if (!is_used(n)) continue;
      const preprocessing_span& s = batches.preprocessing_spans()[n];
      if (u.spans.empty()) u.start_ns = s.start_ns;
      u.batch = *s.batch;
      u.spans.push_back(n);
    }
    if (u.spans.empty()) continue;
    (u.of_item ? has_items : has_own)[u.batch.value()] = true;
    by_epoch[batches.at(u.batch).epoch].push_back(std::move(u));
  }
  for (std::uint32_t b = 0; b < has_own.size(); ++b) {
    if (!has_items[b] || has_own[b]) continue;
    by_epoch[batches.all()[b].epoch].push_back({batch_id(b), false, {}, INT64_MAX});
  }
  std::vector<std::vector<found_unit>> epochs;
  for (auto& [number, epoch] : by_epoch) {
    put_into_order(epoch, threads);
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

std::int64_t when_received(const run_batches& batches, const batch& b) {
  const std::int64_t used_ns = *batches.left_ns(b);
  const batch_record* const wait = batches.record(b.wait);
  return wait != nullptr && !wait->is_marker() ? std::min(used_ns, wait->end_ns()) : used_ns;
}

}  // namespace lotus::tool
