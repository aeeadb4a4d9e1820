// Joins spans of time that overlap, and measures what they cover.
#ifndef LOTUS_TOOL_MODEL_TIMES_INTERVALS_HPP
#define LOTUS_TOOL_MODEL_TIMES_INTERVALS_HPP

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Disjoint intervals, sorted by time.
using intervals = std::vector<time_span>;

inline intervals joined(intervals spans) {
  std::sort(spans.begin(), spans.end(),
            [](const time_span& a, const time_span& b) { return a.start_ns < b.start_ns; });
  intervals disjoint;
  for (const time_span& s : spans) {
    if (disjoint.empty() || s.start_ns > disjoint.back().end_ns) {
      disjoint.push_back(s);
    } else {
      disjoint.back().end_ns = std::max(disjoint.back().end_ns, s.end_ns);
    }
  }
  return disjoint;
}

/// Returns the times between the last batch of an epoch and the wait for the first of the next; see
/// epoch_times::between_ns.
inline intervals between_epochs(const run_batches& batches) {
  intervals all;
  for (const epoch_times& of : batches.epochs()) {
    if (of.between_ns) all.push_back({of.last_ns, of.last_ns + *of.between_ns});
  }
  return joined(std::move(all));
}

/// Returns how much of the time from start_ns to end_ns the intervals cover.
inline double covered(const intervals& all, std::int64_t start_ns, std::int64_t end_ns) {
  auto at = std::upper_bound(all.begin(), all.end(), start_ns,
                             [](std::int64_t t, const time_span& s) { return t < s.end_ns; });
  double sum_ns = 0;
  for (; at != all.end() && at->start_ns < end_ns; ++at) {
    sum_ns += static_cast<double>(std::min(end_ns, at->end_ns) - std::max(start_ns, at->start_ns));
  }
  return sum_ns;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TIMES_INTERVALS_HPP
