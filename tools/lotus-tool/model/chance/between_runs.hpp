// Computes confidence intervals of changes, and tests whether the difference between two groups of
// runs, such as before and after a change, is statistically significant.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Relative change of the mean from a to b, (b - a) / a, with its 95 % confidence interval.
struct change {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Computes the change with a percentile bootstrap (Efron and Tibshirani, An Introduction to the
/// Bootstrap, ch. 13): both sets are resampled with replacement 2000 times; the interval is from
/// the 2.5th to the 97.5th percentile of the changes. Large sets are first averaged in 1000 blocks
/// of neighbors, and the block means are resampled: this is cheaper and keeps similar neighbors
/// together. The random seed is fixed, so results are reproducible. Neither set may be empty, and
/// the mean of a must not be 0.
change bootstrap_change(const value_blocks& a, const value_blocks& b);

/// Returns the relative change from `a` to `b` with its 95 % confidence interval. Each vector
/// contains one value per run. The change is the difference of the means of the logarithms, tested
/// by Welch's t test (Welch, Biometrika 34, 1947). If one of the two groups has only one run, its
/// variance is assumed to equal that of the other group (Student's t test). Unlike
/// bootstrap_change(), this takes into account that runs of the same program differ. Returns
/// nullopt if neither group has two runs, or if any value is 0 or less.
std::optional<change> change_between_runs(const std::vector<double>& a,
                                          const std::vector<double>& b);

/// Returns the p-value of a permutation test (Good, Permutation Tests, ch. 3): the probability that
/// two groups of runs differ at least as much as `a` and `b` although nothing was changed. The test
/// assigns the runs to two groups of the same sizes in all possible ways, or in 20,000 random ways
/// if there are more. The result is the share of these assignments in which the means of the
/// logarithms differ at least as much as they do for `a` and `b`. Returns nullopt if a group has
/// fewer than five runs, or if any value is 0 or less.
std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b);
inline constexpr std::size_t min_permuted_runs = 5;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
