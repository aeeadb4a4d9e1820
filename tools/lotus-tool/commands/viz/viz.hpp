// lotus-tool viz: a picture of one run or several, for a trace viewer.
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
  std::string output;  ///< "-" is standard output; empty: beside the profiler trace
  std::string prefix{default_prefix};
  std::string torch_trace;  ///< the profiler trace to merge into; empty: one found in the run
  std::size_t format = 0;   ///< place in viz_formats()
  view_options view;
  bool coarse = false;  ///< batches only, no operations
  bool compat = false;  ///< the original's events instead of ours
  bool gzip = false;
  bool strict = false;  ///< a malformed line is an error
  bool quiet = false;   ///< no notes
};

/// Draws every run in options.dir. Returns the exit status; throws input_error and usage_error.
int run_viz(const viz_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIZ_HPP
