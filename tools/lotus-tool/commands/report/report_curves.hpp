// Writes the curves of a run's throughput for the report's page.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_CURVES_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_CURVES_HPP

#include "base/formats/json_writer.hpp"
#include "curve/measured_runs.hpp"
#include "findings/diagnosis.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes {"why_not":…}, or {"axes":[…],"sliders":[…]}: a curve for each setting that limits the
/// run or may, before them one for the operation in which a run that the user named differs, and up
/// to three operations whose speed the page's user can choose. For each combination of speeds, an
/// axis has the throughputs of its points, all simulated here. The first slider's speed changes
/// fastest from one combination to the next.
/// @param others  finds other runs of the same program, which are dots.
void write_curves(json_writer& json, const run_data& run, const judgement& judged,
                  measured_runs& others);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_CURVES_HPP
