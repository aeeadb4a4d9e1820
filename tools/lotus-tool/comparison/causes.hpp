// Explains why batches take longer, and finds other differences between the compared runs.
#ifndef LOTUS_TOOL_COMPARISON_CAUSES_HPP
#define LOTUS_TOOL_COMPARISON_CAUSES_HPP

#include <set>
#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/pooled_runs.hpp"

namespace lotus::tool {

/// Returns the operations that explain why the preprocess time of a batch changed: the time or
/// the number of their calls changed, and they account for at least a quarter of the difference.
/// Returns nothing if the change of the preprocess time is not statistically significant.
/// @param rows  the compared operations of the same loader.
std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const std::vector<compared_times>& rows);

/// Returns a sentence which says that batches have different sizes before and after the change; ""
/// if they have the same size, or if the sizes are unknown.
std::string other_size(const pooled_loader& before, const pooled_loader& after);
/// Returns a sentence for each difference between the numbers of workers or of threads in a stage.
std::vector<std::string> other_threads(const pooled_loader& before, const pooled_loader& after);
/// If batches take longer by `longer_ns`, but hardly use more CPU time, returns a text about the
/// CPU times; otherwise "".
std::string same_cpu_time(const compared_value& cpu_ns, double longer_ns);
/// If preprocessing takes longer only because more workers share the CPUs (so the CPU time of a
/// batch is unchanged), returns a sentence about that; otherwise "".
/// @param cpus_after  how many CPUs the runs of `after` could use.
std::string shared_cpus(const pooled_loader& before, const pooled_loader& after,
                        const std::vector<compared_times>& rows,
                        const std::set<double>& cpus_after);
/// Returns a sentence for each difference between the machines of the two sides of the comparison.
std::vector<std::string> unlike_machines(const pooled_runs& before, const pooled_runs& after);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CAUSES_HPP
