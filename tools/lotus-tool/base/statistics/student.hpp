// Computes confidence intervals for the mean of a few values.
#ifndef LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP
#define LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP

namespace lotus::tool {

/// Returns the limit that the absolute value of Student's t exceeds with probability `outside`; use
/// 0.05 for a 95 % interval.
/// @param degrees  the degrees of freedom, at least 1; need not be an integer.
/// @param outside  the probability, between 1e-6 and 1.
double student_reach(double degrees, double outside);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP
