// Provides a stable sort that is fast for ranges that consist of a few sorted parts, and selects
// the largest of many values.
#ifndef LOTUS_TOOL_BASE_SORTING_HPP
#define LOTUS_TOOL_BASE_SORTING_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
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

/// Returns the indices of the `most` largest values, in ascending order; all indices if there are
/// not more values. Takes linear time on average.
/// @param first  first(a, b) returns whether index `a` is preferred to index `b` if their values
/// are
///   equal.
template <class Value, class First = std::less<>>
std::vector<std::uint32_t> indices_of_largest(const std::vector<Value>& values, std::size_t most,
                                              First first = {}) {
  std::vector<std::uint32_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0U);
  if (indices.size() <= most) return indices;
  const auto end = indices.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(indices.begin(), end, indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : first(a, b);
  });
  indices.resize(most);
  indices.shrink_to_fit();
  std::sort(indices.begin(), indices.end());
  return indices;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_SORTING_HPP
