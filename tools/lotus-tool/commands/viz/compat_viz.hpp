// lotus-tool viz --compat: event for event what the original's script writes.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_COMPAT_VIZ_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_COMPAT_VIZ_HPP

#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "commands/viz/viz.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct torch_trace;

/// What one output shows.
struct compat_job {
  const std::vector<run_files>& runs;
  const torch_trace* torch;  ///< the profiler trace to append to; nullptr for none
  const std::string& output;
};

/// Writes the events of the original's visualization_augmenter.py, in the order of the logs, in
/// one reading and constant memory: times in whole µs (cut, not rounded), names as logged, pid
/// and tid the number in the log's name, ids -1-i. Appended to a profiler trace with a base time,
/// which the original does not know, times are relative to that base.
/// Returns the exit status; throws input_error.
int draw_compat(const viz_options& options, const compat_job& job, diagnostic_log& diagnostics,
                std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_COMPAT_VIZ_HPP
