// Writes a comparison as JSON.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP

#include "base/formats/json_writer.hpp"
#include "comparison/comparison.hpp"

namespace lotus::tool {

/// Writes the object that `compare --json` prints and that the report's page shows.
void write_comparison(const compared_sides& sides, const comparison& found, json_writer& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP
