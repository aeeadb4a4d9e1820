// Joins spans of time that overlap.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_INTERVALS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_INTERVALS_HPP

#include <algorithm>
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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_INTERVALS_HPP
