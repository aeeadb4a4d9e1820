// Finds batch markers that a program lacks or uses wrongly, so that there can be no verdict.
#ifndef LOTUS_TOOL_VERDICT_MARKERS_HPP
#define LOTUS_TOOL_VERDICT_MARKERS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A macro that is missing, or that receives the same number each time.
struct marker_fault {
  std::string_view id;  ///< id of the check: "no-consumed" and so on
  std::string text;     ///< what is wrong
  std::string to_do;
};

/// Returns the faults of a run with batches or stages. A missing consumer is not a fault, because
/// the program may be a service.
std::vector<marker_fault> marker_faults(const run_data& run);

/// Why a run without marker_faults() cannot have a verdict: it has no batches or no consumer. Names
/// the two markers that would give one. "" if it has both.
std::string why_no_pipeline(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_MARKERS_HPP
