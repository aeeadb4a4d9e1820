// Summary figures of a set of durations.
#ifndef LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP
#define LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// All in ns; with count 0 the others mean nothing. std_ns is the population's (divides by
/// count, as numpy's default), percentiles interpolate linearly between neighbours.
struct distribution {
  std::size_t count = 0;
  double mean_ns = 0;
  double std_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t total_ns = 0;  ///< stops at the limits of 64 bits
  double p25_ns = 0;
  double p50_ns = 0;
  double p75_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
};

/// Exact figures of `values`, whose order is destroyed. Linear in their number.
distribution describe(std::vector<std::int64_t>& values);

/// The share of `values` below `limit_ns`, 0..1; 0 for none at all.
double share_below(const std::vector<std::int64_t>& values, std::int64_t limit_ns);

/// Drops what lies below Q1 - 2 (Q3 - Q1): the rule of the original's --remove_outliers, meant
/// for the last, short batch.
void remove_low_outliers(std::vector<std::int64_t>& values);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_STATISTICS_DISTRIBUTION_HPP
