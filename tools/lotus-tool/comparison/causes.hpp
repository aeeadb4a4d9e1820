// Explains why batches take longer, and finds differences other than the program.
#ifndef LOTUS_TOOL_COMPARISON_CAUSES_HPP
#define LOTUS_TOOL_COMPARISON_CAUSES_HPP

#include <set>
#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/pooled_runs.hpp"

namespace lotus::tool {

/// Returns the operations that explain at least a quarter of a statistically significant change of
/// the preprocess time and whose own change is significant too.
/// @param rows  of the same loader.
std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const std::vector<compared_times>& rows);

/// Both return a sentence that says how the sides differ: in the size of their batches, or in the
/// number of workers that built them. "" if they do not differ or this is unknown.
std::string other_size(const pooled_loader& before, const pooled_loader& after);
std::string other_workers(const pooled_loader& before, const pooled_loader& after);
/// Reports that preprocessing takes longer only because more workers share the CPUs, which is the
/// case if a batch's CPU time is unchanged. "" if this is not so or unknown.
/// @param cpus_after  the numbers of CPUs that the runs of `after` could use.
std::string shared_cpus(const pooled_loader& before, const pooled_loader& after,
                        const std::vector<compared_times>& rows,
                        const std::set<double>& cpus_after);
/// Reports each difference between the machines of the two sides.
std::vector<std::string> unlike_machines(const pooled_runs& before, const pooled_runs& after);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CAUSES_HPP
