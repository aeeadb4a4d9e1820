// Estimates how much two means differ, with a confidence interval.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP

#include "model/times/value_blocks.hpp"

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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP
