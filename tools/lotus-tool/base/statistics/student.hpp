// How far a mean of few values may be off.
#ifndef LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP
#define LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP

namespace lotus::tool {

/// What Student's t exceeds, on either side of 0 together, with a probability of `outside`: 0.05
/// for the reach of a 95 % interval.
/// @param degrees  of freedom, at least 1; need not be whole.
/// @param outside  between 1e-6 and 1.
double student_reach(double degrees, double outside);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_STATISTICS_STUDENT_HPP
