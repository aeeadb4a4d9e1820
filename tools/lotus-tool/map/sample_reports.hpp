// Samples of a probe, as one report per collected pass of an operation.
#ifndef LOTUS_TOOL_MAP_SAMPLE_REPORTS_HPP
#define LOTUS_TOOL_MAP_SAMPLE_REPORTS_HPP

#include <string>

#include "diagnostics.hpp"
#include "map/function_report.hpp"

namespace lotus::tool {

/// Samples belong to the pass in which their time lies, on any thread: what came before the pass
/// (the random wait) or behind it is left out, to the nanosecond. Throws input_error.
reports_by_op read_sample_reports(const std::string& path, diagnostics& said);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAP_SAMPLE_REPORTS_HPP
