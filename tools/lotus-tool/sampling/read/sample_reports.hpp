// Samples of a probe, as one report per collected pass of an operation.
#ifndef LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP

#include <string>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// Samples belong to the pass in which their time lies, on any thread: what came before the pass
/// (the random wait) or behind it is left out, to the nanosecond. Throws input_error.
reports_by_op read_sample_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
