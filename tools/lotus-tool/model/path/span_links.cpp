#include "model/path/span_links.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "model/pipeline/next_spans.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

span_links::span_links(const run_batches& batches, const std::vector<bool>& is_segmented)
    : spans_(batches.preprocessing_spans()), before_(spans_.size()), earlier_(spans_.size()) {
  std::vector<span_number> order;
  double sum_ns = 0;
  for (span_number n = 0; n < spans_.size(); ++n) {
    if (!is_segmented[n]) continue;
    order.push_back(n);
    sum_ns += static_cast<double>(spans_[n].duration_ns);
  }
  if (!order.empty()) {
    tolerance_ns_ += static_cast<std::int64_t>(0.05 * sum_ns / static_cast<double>(order.size()));
  }
  std::sort(order.begin(), order.end(), [this](span_number a, span_number b) {
    return std::tie(spans_[a].start_ns, a) < std::tie(spans_[b].start_ns, b);
  });
  std::map<file_id, span_number> last;
  for (const span_number n : order) {
    starts_[spans_[n].stage].push_back(n);
    if (!spans_[n].file) continue;
    const auto [at, is_new] = last.try_emplace(*spans_[n].file, n);
    if (is_new) continue;
    before_[n] = at->second;
    at->second = n;
  }
  const std::vector<optional_span> next = next_spans(batches);
  for (const span_number n : order) {
    if (!next[n] || !is_segmented[*next[n]]) continue;
    next_stage_[spans_[n].stage] = spans_[*next[n]].stage;
    optional_span& from = earlier_[*next[n]];
    if (!from || spans_[*from].end_ns() < spans_[n].end_ns()) from = n;
  }
}

optional_span span_links::fetching_span(const preprocessing_span& span) const {
  const auto next = next_stage_.find(span.stage);
  if (next == next_stage_.end() || next->second == span.stage) return std::nullopt;
  const auto starts = starts_.find(next->second);
  if (starts == starts_.end()) return std::nullopt;
  const auto later =
      std::upper_bound(starts->second.begin(), starts->second.end(), span.start_ns,
                       [this](std::int64_t t, span_number n) { return t < spans_[n].start_ns; });
  if (later == starts->second.begin()) return std::nullopt;
  const span_number fetching = *(later - 1);
  if (!just_before(spans_[fetching].start_ns, span.start_ns)) return std::nullopt;
  return fetching;
}

}  // namespace lotus::tool
