// Formats changes as text and as JSON.
#ifndef LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP
#define LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP

#include <string>

#include "base/formats/json_writer.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns a text such as "4 workers instead of 2, prefetch 4 a worker, Decode 2x faster"; "" if
/// `change` changes nothing.
std::string change_text(const pipeline_change& change, const recorded_pipeline& pipeline);

/// Writes a change as JSON, such as {"workers":4,"faster":{"Decode":2}}. Leaves out what does not
/// change. In "faster", null means that the operation takes no time.
void write_change(json_writer& json, const pipeline_change& change);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP
