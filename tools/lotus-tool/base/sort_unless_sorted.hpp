// Provides a sort function that is fast for ranges that are already sorted.
#ifndef LOTUS_TOOL_BASE_SORT_UNLESS_SORTED_HPP
#define LOTUS_TOOL_BASE_SORT_UNLESS_SORTED_HPP

#include <algorithm>

namespace lotus::tool {

/// Sorts like std::sort(), but takes linear time if each element is less than the next one, as in
/// most logs. The result is always that of std::sort().
template <class Iterator, class Less>
void sort_unless_sorted(Iterator begin, Iterator end, Less less) {
  const auto not_less = [&less](const auto& a, const auto& b) { return !less(a, b); };
  if (std::adjacent_find(begin, end, not_less) != end) std::sort(begin, end, less);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_SORT_UNLESS_SORTED_HPP
