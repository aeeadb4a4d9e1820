// Formats changes as text, and their members in outputs.
#ifndef LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP
#define LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "describe/described.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns a text such as "4 workers instead of 2, prefetch 4 a worker, Decode 2x faster"; "" if
/// `change` changes nothing.
/// @param before_last  what separates the last change from those before.
std::string change_text(const pipeline_change& change, const recorded_pipeline& pipeline,
                        std::string_view before_last = ", ");

/// How much a user has to do for a change, least first.
enum class effort : std::uint8_t { setting, code, hardware };
effort effort_of(const pipeline_change& change);
/// Returns "setting", "code" or "hardware".
const char* effort_name(effort of);

/// JSON contains only what changes, such as {"workers":4,"faster":{"Decode":2}}.
const description<pipeline_change>& description_of(const pipeline_change*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_TEXT_HPP
