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
  std::string output;  ///< "-" is standard output; empty: next to the profiler trace
  std::string prefix{default_prefix};
  std::string torch_trace;  ///< the profiler trace to merge into; empty: search in the run's folder
  std::size_t format = 0;   ///< index in viz_formats()
  view_options view;
  bool coarse = false;  ///< batches only, no operations
  bool compat = false;  ///< write the events of the original tool
  bool gzip = false;
  bool strict = false;  ///< a malformed line is an error
  bool quiet = false;   ///< print no notes
};

/// Draws every run in options.dir. Returns the exit status; throws input_error and usage_error.
int run_viz(const viz_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIZ_HPP
