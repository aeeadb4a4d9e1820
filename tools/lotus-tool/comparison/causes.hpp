// Explains why batches take longer or shorter.
#ifndef LOTUS_TOOL_COMPARISON_CAUSES_HPP
#define LOTUS_TOOL_COMPARISON_CAUSES_HPP

#include <optional>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/pooled_runs.hpp"

namespace lotus::tool {

/// Returns the operations that explain why the preprocess time of a batch changed: the time or
/// the number of their calls changed, and they account for at least a quarter of the difference.
/// Returns nothing if the change of the preprocess time is not statistically significant.
/// @param of  the same loader with its rows.
std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const compared_loader& of);

/// Returns the operation with the most time of those that show that batches have different sizes
/// before and after the change; nullopt if the sizes are the same, or unknown.
std::optional<differing_calls> other_size(const pooled_loader& before, const pooled_loader& after);
/// Whether batches take longer, but hardly use more CPU time.
bool is_cpu_time_the_same(const compared_times& of);
/// Whether preprocessing takes longer only because more workers share the CPUs, so that the CPU
/// time of a batch is unchanged.
/// @param of  has its rows, workers and CPUs.
bool are_cpus_shared(const compared_loader& of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CAUSES_HPP
