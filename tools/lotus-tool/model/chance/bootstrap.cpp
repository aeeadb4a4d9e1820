#include "model/chance/bootstrap.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "model/times/value_blocks.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_blocks = 1000;
constexpr std::size_t rounds = 2000;

double mean_of(const std::vector<value_block>& blocks) {
  value_block all;
  for (const value_block& b : blocks) all = {all.sum + b.sum, all.count + b.count};
  return all.sum / all.count;
}

double drawn_mean(const std::vector<value_block>& blocks, std::mt19937_64& random) {
  value_block all;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    // Scale the upper half of the random bits to an index of a block. This is cheaper than the
    // remainder of a division, and the indices are as evenly distributed.
    const value_block& b = blocks[((random() >> 32U) * blocks.size()) >> 32U];
    all = {all.sum + b.sum, all.count + b.count};
  }
  return all.sum / all.count;
}

}  // namespace

change bootstrap_change(const value_blocks& a, const value_blocks& b) {
  const std::vector<value_block> from = a.blocks(max_blocks);
  const std::vector<value_block> to = b.blocks(max_blocks);
  std::mt19937_64 random(0x10705);  // a fixed seed makes results reproducible
  std::vector<double> changes;
  for (std::size_t i = 0; i < rounds; ++i) {
    const double before = drawn_mean(from, random);
    const double after = drawn_mean(to, random);
    changes.push_back(before != 0 ? (after - before) / before : 0);
  }
  std::sort(changes.begin(), changes.end());
  const double mean = mean_of(from);
  return {(mean_of(to) - mean) / mean, changes[rounds / 40], changes[rounds - 1 - rounds / 40]};
}

}  // namespace lotus::tool
