#include "model/pipeline/items.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/pipeline/stage_threads.hpp"
#include "model/pipeline/work_time.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

std::vector<item> items_of(const run_batches& batches) {
  const std::vector<preprocessing_span>& spans = batches.preprocessing_spans();
  std::vector<span_number> order(spans.size());
  std::iota(order.begin(), order.end(), span_number{0});
  // Spans with equal keys form one entry of the result. They are the spans of one batch (with the
  // same `batch`), or of one occurrence of an item number (with the same `number` and `pass`).
  const auto key = [&](span_number n) {
    const preprocessing_span& s = spans[n];
    return std::make_tuple(s.of_item, s.consumer, s.number, s.of_item ? std::nullopt : s.batch,
                           s.of_item ? s.pass : pass_number());
  };
  std::sort(order.begin(), order.end(), [&](span_number a, span_number b) {
    return std::make_pair(key(a), spans[a].start_ns) < std::make_pair(key(b), spans[b].start_ns);
  });
  std::vector<item> items;
  for (std::size_t at = 0; at < order.size();) {
    const auto of = key(order[at]);
    item& it = items.emplace_back();
    const preprocessing_span& first = spans[order[at]];
    it.number = first.number;
    it.of_item = first.of_item;
    it.epoch = first.of_item || !first.batch ? first.pass.value() : batches.at(*first.batch).epoch;
    it.extent = {first.start_ns, first.end_ns()};
    work_time time;
    for (; at < order.size() && key(order[at]) == of; ++at) {
      const preprocessing_span& s = spans[order[at]];
      it.spans.push_back(order[at]);
      it.extent.end_ns = std::max(it.extent.end_ns, s.end_ns());
      time.add(s);
    }
    it.service_ns = time.service_ns();
    it.queueing_ns = it.extent.duration_ns() - time.covered_ns();
  }
  std::sort(items.begin(), items.end(), [](const item& a, const item& b) {
    return std::tie(a.extent.start_ns, a.number) < std::tie(b.extent.start_ns, b.number);
  });
  return items;
}

std::size_t workers_at_once(const run_batches& batches) {
  std::map<optional_file, std::pair<std::int64_t, std::int64_t>> extents;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (s.stage != preprocess_stage) continue;
    auto& extent = extents.try_emplace(s.file, s.start_ns, s.end_ns()).first->second;
    extent = {std::min(extent.first, s.start_ns), std::max(extent.second, s.end_ns())};
    // Add 1 ns to the end of the span. Then two spans overlap also if one begins at the moment when
    // the other ends, because both workers existed at that moment.
    if (!batches.in_parts()) spans.emplace_back(s.start_ns, s.end_ns() + 1);
  }
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.in_parts() ? batches.made(b) : std::nullopt;
    if (made) spans.emplace_back(made->start_ns, made->end_ns);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  all.reserve(extents.size());
  for (const auto& [file, extent] : extents) all.push_back(extent);
  return std::min(max_at_once(all), max_at_once(spans));
}

}  // namespace lotus::tool
