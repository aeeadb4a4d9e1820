// Selects the largest of many values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace lotus::tool {

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
