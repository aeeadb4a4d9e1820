// Why batches take longer, and what besides the program differs.
#ifndef LOTUS_TOOL_COMPARISON_CAUSES_HPP
#define LOTUS_TOOL_COMPARISON_CAUSES_HPP

#include <set>
#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "comparison/pooled_runs.hpp"

namespace lotus::tool {

/// Operations that make up at least a quarter of a change of preprocessing that is beyond chance,
/// and whose own change is.
/// @param rows  of the same loader.
std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const std::vector<compared_times>& rows);

/// That batches are of different sizes, or made by different numbers of workers; "" where they are
/// not, or nothing tells.
std::string other_size(const pooled_loader& before, const pooled_loader& after);
std::string other_workers(const pooled_loader& before, const pooled_loader& after);
/// That preprocessing takes longer only because more workers share the CPUs: a batch's CPU time is
/// the same. "" where that is not so, or not known.
/// @param cpus_after  that the runs after could use.
std::string shared_cpus(const pooled_loader& before, const pooled_loader& after,
                        const std::vector<compared_times>& rows,
                        const std::set<double>& cpus_after);
/// Likewise each thing in which the machines differ.
std::vector<std::string> unlike_machines(const pooled_runs& before, const pooled_runs& after);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CAUSES_HPP
