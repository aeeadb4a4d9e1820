// Estimates the certainty of a difference if each side ran several times.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// Returns the relative change from a to b, which contain one value per run, with its 95 %
/// interval: the difference of the means of the logarithms, by Welch's t test (Welch, Biometrika
/// 34, 1947). If one side has one run, its runs are assumed to vary as much as those of the other
/// side (Student). Resampling the values of all runs, as bootstrap_change() does, would ignore that
/// runs differ. Missing if neither side has two runs, or if a value is not above 0.
std::optional<change> change_between_runs(const std::vector<double>& a,
                                          const std::vector<double>& b);

/// Returns how likely it is that equal runs would by chance differ as much as these two sides: of
/// all ways to assign the runs to two sides of these sizes (or of 20,000 random ones if there are
/// more), the share in which the means of logarithms differ at least as much (Good, Permutation
/// Tests, ch. 3). Missing if a side has fewer than five runs.
std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b);
inline constexpr std::size_t least_permuted_runs = 5;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
