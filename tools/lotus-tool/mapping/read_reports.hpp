// Reads a profiler's report of any supported kind.
#ifndef LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_REPORTS_HPP

#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// Whether a file with this name can be a report. Logs, JSON files and hidden files cannot, except
/// for hidden files with samples.
bool is_report_name(std::string_view name) noexcept;

/// Reads a report and recognizes its kind by its content: CSV of VTune or uProf, perf report -t,
/// callgrind's profile, or samples of the built-in collector. For any other kind, prints a warning
/// and returns nothing. Throws input_error with file and line.
reports_by_op read_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
