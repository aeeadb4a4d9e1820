#include "model/pipeline/next_spans.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

std::vector<optional_span> next_spans(const run_batches& batches) {
  const std::vector<preprocessing_span>& all = batches.preprocessing_spans();
  // For each item or batch (the owner): its spans, sorted by start.
  using owner = std::tuple<optional_batch, bool, consumer_id, std::int64_t, pass_number>;
  std::map<owner, std::vector<span_number>> spans_of;
  const auto owner_of = [](const preprocessing_span& s) {
    const bool own = s.of_item || !s.batch;
    return own ? owner{s.batch, true, s.consumer, s.number, s.pass}
               : owner{s.batch, false, {}, 0, {}};
  };
  for (span_number m = 0; m < all.size(); ++m) spans_of[owner_of(all[m])].push_back(m);
  for (auto& [key, route] : spans_of) {
    std::stable_sort(route.begin(), route.end(), [&all](span_number a, span_number b) {
      return all[a].start_ns < all[b].start_ns;
    });
  }
  const auto next_of = [&](const owner& key, std::int64_t end_ns) -> optional_span {
    const auto route = spans_of.find(key);
    if (route == spans_of.end()) return std::nullopt;
    const auto at =
        std::lower_bound(route->second.begin(), route->second.end(), end_ns,
                         [&all](span_number m, std::int64_t ns) { return all[m].start_ns < ns; });
    if (at == route->second.end()) return std::nullopt;
    return *at;
  };
  std::vector<optional_span> next(all.size());
  for (span_number m = 0; m < all.size(); ++m) {
    const preprocessing_span& s = all[m];
    // If a span has no duration, assume that it lasted 1 ns. Otherwise the search for the next span
    // would find the span itself.
    const std::int64_t end_ns = std::max(s.end_ns(), s.start_ns + 1);
    next[m] = next_of(owner_of(s), end_ns);
    if (!next[m] && s.of_item && s.batch) {
      next[m] = next_of(owner{s.batch, false, {}, 0, {}}, end_ns);
    }
  }
  return next;
}

}  // namespace lotus::tool
