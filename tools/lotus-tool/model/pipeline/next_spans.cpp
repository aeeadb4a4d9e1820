#include "model/pipeline/next_spans.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/sorting.hpp"

namespace lotus::tool {

std::vector<optional_span> next_spans(const run_batches& batches) {
  const std::vector<preprocessing_span>& all = batches.preprocessing_spans();
  // The item or batch that a span works on.
  using owner = std::tuple<optional_batch, bool, consumer_id, std::int64_t, pass_number>;
  const auto owner_of = [&all](span_number m) {
    const preprocessing_span& s = all[m];
    const bool own = s.of_item || !s.batch;
    return own ? owner{s.batch, true, s.consumer, s.number, s.pass}
               : owner{s.batch, false, {}, 0, {}};
  };
  using place = std::pair<owner, std::int64_t>;  // sorts spans by owner, then by start
  const auto place_of = [&](span_number m) { return place(owner_of(m), all[m].start_ns); };
  std::vector<span_number> order(all.size());
  std::iota(order.begin(), order.end(), span_number{0});
  sort_runs(order.begin(), order.end(),
            [&](span_number a, span_number b) { return place_of(a) < place_of(b); });
  // Returns the first span of an owner from position `from` in `order` on that begins at `ns` or
  // later.
  const auto first_at = [&](std::size_t from, const owner& of, std::int64_t ns) -> optional_span {
    const place wanted(of, ns);
    const auto at =
        std::partition_point(order.begin() + static_cast<std::ptrdiff_t>(from), order.end(),
                             [&](span_number m) { return place_of(m) < wanted; });
    if (at == order.end() || owner_of(*at) != of) return std::nullopt;
    return *at;
  };
  std::vector<optional_span> next(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const span_number m = order[i];
    const preprocessing_span& s = all[m];
    const owner of = owner_of(m);
    // If a span has no duration, assume that it lasted 1 ns. Otherwise the search for the next span
    // would find the span itself.
    const std::int64_t end_ns = std::max(s.end_ns(), s.start_ns + 1);
    // Most spans are the last of their owner, or the owner's next span follows immediately.
    const bool is_last = i + 1 == order.size() || owner_of(order[i + 1]) != of;
    if (!is_last) {
      next[m] = all[order[i + 1]].start_ns >= end_ns ? optional_span(order[i + 1])
                                                     : first_at(i + 1, of, end_ns);
    }
    if (!next[m] && s.of_item && s.batch) {
      next[m] = first_at(0, owner{s.batch, false, {}, 0, {}}, end_ns);
    }
  }
  return next;
}

}  // namespace lotus::tool
