// Diagnoses the compared runs, so that a comparison says what limits each side and contradicts
// neither.
#ifndef LOTUS_TOOL_COMPARISON_FACTS_OF_SIDES_HPP
#define LOTUS_TOOL_COMPARISON_FACTS_OF_SIDES_HPP

#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "findings/diagnosis.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Diagnoses the first runs of one loader on one side, without predictions. Runs that cannot be
/// diagnosed are left out. Throws input_error.
std::vector<diagnosis> diagnoses_of(const std::vector<run_files>& runs, const std::string& loader,
                                    const compared_sides& sides);

/// Stores what the diagnoses of both sides say, and removes from `to` what they contradict.
void add_facts(const std::vector<diagnosis>& before, const std::vector<diagnosis>& after,
               compared_loader& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_FACTS_OF_SIDES_HPP
