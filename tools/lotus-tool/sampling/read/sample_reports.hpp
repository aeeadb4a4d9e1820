// Converts the samples of the built-in collector to one report for each sampled_region.
#ifndef LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP

#include <string>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// Reads a file of samples. A sample counts for the innermost region during which it was taken; for
/// a thread with regions, only this thread's regions count. Samples outside of all regions are
/// ignored. Throws input_error.
reports_by_op read_sample_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SAMPLE_REPORTS_HPP
