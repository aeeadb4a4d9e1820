// Completes a change that the user asked for with what the recording says about it.
#ifndef LOTUS_TOOL_COMMANDS_WHATIF_RESOLVED_CHANGE_HPP
#define LOTUS_TOOL_COMMANDS_WHATIF_RESOLVED_CHANGE_HPP

#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns `change` with the names as in the logs, and with what the change means in this run, such
/// as the operations that a cache replaces. Throws input_error if the change is impossible for this
/// run, for example because it has no stage of that name.
/// @param run     must have been read with run_parts::operations.
/// @param notes   receives what the prediction assumes.
pipeline_change resolved_change(pipeline_change change, const recorded_pipeline& pipeline,
                                const run_data& run, const diagnosis& d,
                                std::vector<phrase>& notes);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_WHATIF_RESOLVED_CHANGE_HPP
