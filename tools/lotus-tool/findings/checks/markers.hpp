// Finds batch macros, such as LOTUS_BATCH_CONSUMED, that a program lacks or uses incorrectly.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_MARKERS_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_MARKERS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A batch macro that the program lacks or calls with the same number each time.
struct marker_fault {
  std::string_view id;  ///< identifier of the check, such as "no-consumed"
  std::string text;     ///< description of the problem for the user
  std::string to_do;
};

/// Returns the faults of a run that has batches or stages. It is no fault if a program has stages
/// but no consumer, because the program may be a service.
std::vector<marker_fault> marker_faults(const run_data& run);

/// Returns why there can be no verdict on a run that passed marker_faults(): the run has no batches
/// or no consumer, and the text names the two macros to add. Returns "" if it has both.
std::string why_no_pipeline(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_MARKERS_HPP
