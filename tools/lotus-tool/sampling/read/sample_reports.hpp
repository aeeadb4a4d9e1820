// Converts the samples of a probe to one report per collected pass of an operation.
#ifndef LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP

#include <string>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// A sample of any thread belongs to the pass during which it was taken. Samples outside of all
/// passes, such as those of the random wait before a pass, are left out. Throws input_error.
reports_by_op read_sample_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
