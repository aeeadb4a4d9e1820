#include "model/times/value_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

std::vector<value_block> value_blocks::blocks(std::size_t most) const {
  const std::size_t n = std::min<std::size_t>(count_, most);
  std::vector<value_block> found;
  double before = 0;  // number of values in the blocks before the current one
  for (const value_block& b : all_) {
    // Divide all values evenly among n blocks: block i ends after count * (i + 1) / n values.
    const std::size_t i = found.empty() ? 0 : found.size() - 1;
    const std::uint64_t wanted = count_ * (i + 1) / n;
    const auto end = static_cast<double>(wanted);
    if (found.empty() || before >= end) found.emplace_back();
    found.back().sum += b.sum;
    found.back().count += b.count;
    before += b.count;
  }
  return found;
}

void value_blocks::halve() {
  for (std::size_t i = 0; i + 1 < all_.size(); i += 2) {
    all_[i / 2] = {all_[i].sum + all_[i + 1].sum, all_[i].count + all_[i + 1].count};
  }
  all_.resize(all_.size() / 2);
  size_ *= 2;
}

}  // namespace lotus::tool
