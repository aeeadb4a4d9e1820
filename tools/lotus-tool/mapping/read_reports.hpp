// Reads a profiler's report of any known kind.
#ifndef LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_REPORTS_HPP

#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// Whether a file of this name can be a report: no log, no JSON, and no hidden file except one of
/// samples.
bool is_report_name(std::string_view name) noexcept;

/// Reads a report and recognizes its kind by its content: VTune's or uProf's CSV, perf report -t,
/// callgrind's profile, callgrind_annotate, or samples of the built-in collector. Returns nothing,
/// with a warning, for any other kind. Throws input_error with file and line.
reports_by_op read_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
