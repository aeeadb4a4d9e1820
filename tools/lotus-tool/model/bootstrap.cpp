#include "model/bootstrap.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace lotus::tool {
namespace {

constexpr std::size_t most_blocks = 1000;
constexpr std::size_t rounds = 2000;

struct block {
  double sum;
  double count;
};

std::vector<block> blocks_of(const std::vector<std::int64_t>& values) {
  const std::size_t n = std::min(values.size(), most_blocks);
  std::vector<block> blocks;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t first = values.size() * i / n;
    const std::size_t last = values.size() * (i + 1) / n;
    double sum = 0;
    for (std::size_t at = first; at < last; ++at) sum += static_cast<double>(values[at]);
    blocks.push_back({sum, static_cast<double>(last - first)});
  }
  return blocks;
}

double mean_of(const std::vector<block>& blocks) {
  block all{0, 0};
  for (const block& b : blocks) all = {all.sum + b.sum, all.count + b.count};
  return all.sum / all.count;
}

double drawn_mean(const std::vector<block>& blocks, std::mt19937_64& random) {
  block all{0, 0};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    // The upper half times the number of blocks: as even as a division, and cheaper.
    const block& b = blocks[((random() >> 32U) * blocks.size()) >> 32U];
    all = {all.sum + b.sum, all.count + b.count};
  }
  return all.sum / all.count;
}

}  // namespace

change bootstrap_change(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const std::vector<block> from = blocks_of(a);
  const std::vector<block> to = blocks_of(b);
  std::mt19937_64 random(0x10705);  // any fixed seed: the same question gets the same answer
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
