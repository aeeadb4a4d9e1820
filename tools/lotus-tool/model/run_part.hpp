// Finds the part of a run that the user requests with --from, --to and --last.
#ifndef LOTUS_TOOL_MODEL_RUN_PART_HPP
#define LOTUS_TOOL_MODEL_RUN_PART_HPP

#include "log/window/time_window.hpp"
#include "log/window/wanted_part.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Whether a run contains the batches with which the part begins and ends.
bool has_part(const wanted_part& wanted, const run_data& run);

/// Returns the time range of the part. A batch begins with its preprocessing and ends with the
/// consumer's step. Throws usage_error if the run lacks one of the batches, or if the part ends
/// before it begins.
time_window part_of(const wanted_part& wanted, const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_PART_HPP
