// Provides a stable sort that is fast for ranges that consist of a few sorted parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Sorts like std::stable_sort(), but takes linear time if the range consists of a few sorted
/// parts. Such a range results, for example, from reading one log after another.
template <class Iterator, class Less>
void sort_runs(Iterator begin, Iterator end, Less less) {
  constexpr std::size_t max_runs = 16;  // with more parts, merging them costs as much as sorting
  std::vector<Iterator> ends;           // ends of the sorted parts, in order
  for (Iterator at = begin; at != end;) {
    at = std::is_sorted_until(at, end, less);
    ends.push_back(at);
    if (ends.size() > max_runs) return std::stable_sort(begin, end, less);
  }
  while (ends.size() > 1) {
    std::vector<Iterator> merged;
    Iterator first = begin;
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      std::inplace_merge(first, ends[i], ends[i + 1], less);
      first = ends[i + 1];
      merged.push_back(first);
    }
    if (ends.size() % 2 != 0) merged.push_back(ends.back());
    ends = std::move(merged);
  }
}

}  // namespace lotus::tool
