// Writes the critical path, which the report's timeline draws as outlines.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_PATH_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_PATH_HPP

#include <cstddef>
#include <string>

#include "base/formats/json_writer.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes {"left_out":how many of the path's shortest segments are missing,"segments":base64}. For
/// each segment of a thread, in order of time, `segments` contains in LEB128 its start minus the
/// end of the previous segment (zigzag), its duration and the number of its track. Segments that
/// belong to no single thread are not written.
/// @param text  the text that `json` appends to.
/// @param most  maximum number of segments.
void write_path_segments(json_writer& json, std::string& text, const run_data& run,
                         const critical_path& path, std::size_t most);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_PATH_HPP
