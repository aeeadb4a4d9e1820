// Reads a profiler's report of any kind that is known.
#ifndef LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_REPORTS_HPP

#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// Whether a file of this name can be a report: no log, not JSON, and hidden only if it holds
/// samples.
bool is_report_name(std::string_view name) noexcept;

/// Reads a report of any kind that is known, told by its content: VTune's and uProf's CSV,
/// perf report -t, callgrind's profile and callgrind_annotate, samples of the built-in collector.
/// Of another kind: none, with a warning. Throws input_error, naming file and line.
reports_by_op read_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_REPORTS_HPP
