// Estimates the certainty of a difference of two means.
#ifndef LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP
#define LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP

#include "model/times/value_blocks.hpp"

namespace lotus::tool {

/// Relative change of the mean from a to b, (b - a) / a, with its 95 % interval.
struct change {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13): both sets
/// are resampled with replacement 2000 times; the interval is from the 2.5th to the 97.5th
/// percentile of the changes. Large sets are first averaged in 1000 blocks of neighbors, whose
/// means are resampled instead: this is cheaper and keeps similar neighbors together. The random
/// numbers are the same every time. Neither set may be empty, and a's mean must not be 0.
change bootstrap_change(const value_blocks& a, const value_blocks& b);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CHANCE_BOOTSTRAP_HPP
