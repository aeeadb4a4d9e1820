// How sure a difference is where each side ran several times.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// Relative change from a to b, each a figure of every run, with its 95 % interval: of the
/// logarithms' means the difference, by Welch's t test (Welch, Biometrika 34, 1947). Where one side
/// has one run, runs of it are taken to differ as those of the other side do (Student). Drawing
/// from the values of all runs, as bootstrap_change() does, would not see that runs differ.
/// Missing where neither side has two, and where a figure is not above 0.
std::optional<change> change_between_runs(const std::vector<double>& a,
                                          const std::vector<double>& b);

/// How likely it is that runs that do not differ are parted as unevenly as these two sides by
/// chance: of all ways to deal the runs out to two sides of these sizes, or of 20,000 drawn ones
/// where there are more, the share whose means of logarithms are at least as far apart (Good,
/// Permutation Tests, ch. 3). Missing where a side has fewer than five runs.
std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b);
inline constexpr std::size_t least_permuted_runs = 5;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BETWEEN_RUNS_HPP
