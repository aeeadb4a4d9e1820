#include "model/chance/between_runs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/statistics/distribution.hpp"

namespace lotus::tool {
namespace {

/// Mean and variance of the logarithms of the values of one group of runs, and the number of
/// values.
struct spread {
  double mean = 0;
  double variance = 0;  ///< variance of a single value; 0 if there is only one value
  double count = 0;
};

bool all_above_0(const std::vector<double>& values) {
  return !values.empty() &&
         std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
}

spread spread_of(const std::vector<double>& values) {
  spread of;
  of.count = static_cast<double>(values.size());
  for (const double v : values) of.mean += std::log(v) / of.count;
  for (const double v : values) {
    const double off = std::log(v) - of.mean;
    if (of.count > 1) of.variance += off * off / (of.count - 1);
  }
  return of;
}

/// Returns the sum of `logs`, the logarithms of a figure of each run, over one group of the runs:
/// those whose indices are in `chosen`. The other runs are the other group. The sum over both
/// groups is always the same, so the sum of one group determines how much the groups differ.
double sum_of(const std::vector<double>& logs, const std::vector<std::size_t>& chosen) {
  return std::accumulate(chosen.begin(), chosen.end(), 0.0,
                         [&](double sum, std::size_t i) { return sum + logs[i]; });
}

/// `chosen` is an ascending list of different numbers below `of`. Replaces it by the next such list
/// of the same size, in lexicographic order. Returns false if `chosen` was the last one.
bool next_choice(std::vector<std::size_t>& chosen, std::size_t of) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] + chosen.size() == of + i) continue;
    ++chosen[i];
    for (std::size_t j = i + 1; j < chosen.size(); ++j) chosen[j] = chosen[j - 1] + 1;
    return true;
  }
  return false;
}

double ways_to_choose(std::size_t some, std::size_t of) {
  double assignments = 1;
  for (std::size_t i = 0; i < some; ++i) {
    assignments *= static_cast<double>(of - i) / static_cast<double>(i + 1);
  }
  return assignments;
}

}  // namespace

std::optional<change> change_between_runs(const std::vector<double>& a,
                                          const std::vector<double>& b) {
  if (std::max(a.size(), b.size()) < 2 || !all_above_0(a) || !all_above_0(b)) return std::nullopt;
  spread from = spread_of(a);
  spread to = spread_of(b);
  double degrees = 0;
  if (a.size() == 1 || b.size() == 1) {
    degrees = from.count + to.count - 2;
    // One group has only one run, so its variance is unknown and stored as 0. Assume that it has
    // the variance of the other group.
    from.variance = to.variance = from.variance + to.variance;
  }
  const double of_a = from.variance / from.count;
  const double of_b = to.variance / to.count;
  if (degrees == 0 && of_a + of_b > 0) {
    degrees = (of_a + of_b) * (of_a + of_b) /
              (of_a * of_a / (from.count - 1) + of_b * of_b / (to.count - 1));
  }
  const double error = std::sqrt(of_a + of_b);
  const double reach = error > 0 ? student_reach(degrees, 0.05) * error : 0;
  const double grown = to.mean - from.mean;
  return change{std::expm1(grown), std::expm1(grown - reach), std::expm1(grown + reach)};
}

std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (std::min(a.size(), b.size()) < min_permuted_runs || !all_above_0(a) || !all_above_0(b)) {
    return std::nullopt;
  }
  std::vector<double> logs;
  for (const std::vector<double>* side : {&a, &b}) {
    for (const double v : *side) logs.push_back(std::log(v));
  }
  const double all = std::accumulate(logs.begin(), logs.end(), 0.0);
  const double share = static_cast<double>(a.size()) / static_cast<double>(logs.size());
  std::vector<std::size_t> chosen(a.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  // Subtract a tolerance, because rounding makes a sum depend on the order in which its numbers are
  // added.
  const double observed = std::abs(sum_of(logs, chosen) - share * all) - 1e-12;
  const auto is_extreme = [&] { return std::abs(sum_of(logs, chosen) - share * all) >= observed; };
  constexpr int max_assignments = 20'000;
  double assignments = 0;
  double extreme = 0;
  if (ways_to_choose(a.size(), logs.size()) <= max_assignments) {
    do {
      ++assignments;
      extreme += is_extreme() ? 1 : 0;
    } while (next_choice(chosen, logs.size()));
    return extreme / assignments;
  }
  std::mt19937_64 random(0x10705);  // a fixed seed makes results reproducible
  std::vector<std::size_t> order(logs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int drawn = 0; drawn < max_assignments; ++drawn) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::size_t left = order.size() - i;
      std::swap(order[i], order[i + (((random() >> 32U) * left) >> 32U)]);
      chosen[i] = order[i];
    }
    extreme += is_extreme() ? 1 : 0;
  }
  // Add 1 to both numbers, because the assignment that was observed counts as one more random one.
  return (extreme + 1) / (max_assignments + 1);
}

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
