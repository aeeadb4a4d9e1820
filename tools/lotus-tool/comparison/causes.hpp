// Explains why batches take longer, and finds other differences between the compared runs.
#ifndef LOTUS_TOOL_COMPARISON_CAUSES_HPP
#define LOTUS_TOOL_COMPARISON_CAUSES_HPP

#include <set>
#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/pooled_runs.hpp"

namespace lotus::tool {

/// If the change of the preprocess time is statistically significant, returns the operations that
/// changed significantly and explain at least a quarter of it.
/// @param rows  the compared operations of the same loader.
std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const std::vector<compared_times>& rows);

/// Returns a sentence about a different size of batches; "" if there is none or it is unknown.
std::string other_size(const pooled_loader& before, const pooled_loader& after);
/// Returns sentences about different numbers of workers and of threads in stages.
std::vector<std::string> other_threads(const pooled_loader& before, const pooled_loader& after);
/// Returns a sentence if preprocessing takes longer only because more workers share the CPUs, which
/// is the case if the CPU time of a batch is unchanged. Else returns "".
/// @param cpus_after  how many CPUs the runs of `after` could use.
std::string shared_cpus(const pooled_loader& before, const pooled_loader& after,
                        const std::vector<compared_times>& rows,
                        const std::set<double>& cpus_after);
/// Returns a sentence for each difference between the machines of the two sides.
std::vector<std::string> unlike_machines(const pooled_runs& before, const pooled_runs& after);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CAUSES_HPP
