// lotus-tool viz --compat: writes exactly the events that the script of the original Lotus writes.
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

/// An output file, and the runs that are written to it.
struct compat_job {
  const std::vector<run_files>& runs;
  const torch_trace* torch;  ///< the profiler trace to append to; nullptr for none
  const std::string& output;
};

/// Writes the events of the original Lotus's visualization_augmenter.py in the order of the logs,
/// in one pass and with constant memory. Times are whole µs (truncated, not rounded), names are as
/// in the log, pid and tid are the number in the log's name, the id of batch i is -1-i. If a
/// profiler trace has a base time, times are relative to it; the original script does not support
/// base times. Returns the exit status; throws input_error.
int draw_compat(const viz_options& options, const compat_job& job, diagnostic_log& diagnostics,
                std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_COMPAT_VIZ_HPP
