// Tests whether two groups of runs, such as before and after a change, really differ.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// Returns the relative change from `a` to `b` with its 95 % confidence interval. Each vector
/// contains one value per run. The change is the difference of the means of the logarithms, tested
/// by Welch's t test (Welch, Biometrika 34, 1947). If one side has only one run, its variance is
/// assumed to equal that of the other side (Student's t test). Unlike bootstrap_change(), this
/// takes into account that runs of the same program differ. Returns nullopt if neither side has two
/// runs, or if any value is 0 or less.
std::optional<change> change_between_runs(const std::vector<double>& a,
                                          const std::vector<double>& b);

/// Returns the p-value of a permutation test (Good, Permutation Tests, ch. 3): the probability that
/// two sides differ at least as much as these two although nothing was changed. The test assigns
/// the runs to two sides of the same sizes in all possible ways, or in 20,000 random ones if there
/// are more. The result is the share of assignments in which the means of the logarithms differ at
/// least as much. Returns nullopt if a side has fewer than five runs.
std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b);
inline constexpr std::size_t min_permuted_runs = 5;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
