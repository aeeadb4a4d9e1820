// Summary statistics of a set of durations, and quantiles of Student's t distribution.
#ifndef LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP
#define LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// Summary statistics, in ns. If count is 0, the other members have no meaning. std_ns is the
/// standard deviation of the population (divided by count, as in numpy); percentiles are
/// interpolated linearly between neighbors.
struct distribution {
  std::size_t count = 0;
  double mean_ns = 0;
  double std_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t total_ns = 0;  ///< sum of all values; saturates at the limits of 64 bits
  double p25_ns = 0;
  double p50_ns = 0;
  double p75_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
};

/// Computes exact statistics of `values` in linear time. Reorders `values`.
distribution describe(std::vector<std::int64_t>& values);

/// Returns the share of `values` below `limit_ns`, 0..1; 0 if there are no values.
double share_below(const std::vector<std::int64_t>& values, std::int64_t limit_ns);

/// Removes values below Q1 - 2 (Q3 - Q1), where Q1 and Q3 are the quartiles. The option
/// --remove_outliers of LotusTrace (the original Lotus for PyTorch) does the same. The option is
/// intended for the last batch of an epoch, which takes less time if it is incomplete.
void remove_low_outliers(std::vector<std::int64_t>& values);

/// Returns the limit that the absolute value of Student's t exceeds with probability `outside`; use
/// 0.05 for a 95 % interval.
/// @param degrees  the degrees of freedom, at least 1; need not be an integer.
/// @param outside  the probability, between 1e-6 and 1.
double student_reach(double degrees, double outside);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP
