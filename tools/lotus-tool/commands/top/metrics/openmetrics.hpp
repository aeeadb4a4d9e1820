// Formats the state of running programs as metrics for Prometheus.
#ifndef LOTUS_TOOL_COMMANDS_TOP_METRICS_OPENMETRICS_HPP
#define LOTUS_TOOL_COMMANDS_TOP_METRICS_OPENMETRICS_HPP

#include <string>
#include <vector>

#include "commands/top/live_runs.hpp"

namespace lotus::tool {

/// Returns gauges of the rates, the wait share and the verdict of each run, as text that is valid
/// in the formats Prometheus 0.0.4 and OpenMetrics 1.0. The text ends with "# EOF". It contains no
/// timestamps, because node exporter's textfile collector does not allow them. If a value is
/// unknown for a run, the metric is omitted for this run.
std::string openmetrics_text(const std::vector<live_run>& runs);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_METRICS_OPENMETRICS_HPP
