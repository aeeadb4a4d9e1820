// lotus-tool viz: draws one or several runs for a trace viewer.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIZ_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIZ_HPP

#include <cstddef>
#include <ostream>
#include <string>

#include "commands/viz/view.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct viz_options {
  std::string dir;
  /// Path of the output; "-" is standard output; empty: next to the profiler trace.
  std::string output;
  std::string prefix{default_prefix};
  /// Path of the profiler trace to merge into; empty: search in the run's folder.
  std::string torch_trace;
  std::size_t format = 0;  ///< index in viz_formats
  view_options view;
  bool coarse = false;  ///< whether to draw only batches and no operations
  bool compat = false;  ///< whether to write the events of the original Lotus's script
  bool gzip = false;
  bool strict = false;  ///< whether a malformed line is an error
  bool quiet = false;   ///< whether to print no notes
};

/// Draws every run in options.dir. Returns the exit status; throws input_error and usage_error.
int run_viz(const viz_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIZ_HPP
