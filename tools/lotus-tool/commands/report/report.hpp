// lotus-tool report: writes one page that shows everything about some runs.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "log/folder/log_files.hpp"
#include "mapping/attribution.hpp"

namespace lotus::tool {

struct report_options {
  std::vector<std::string> dirs;
  std::string output;  ///< "-" is standard output
  std::string prefix{default_prefix};
  std::size_t skip_batches = 0;  ///< at the beginning of every epoch, for the verdict
  /// A mapping and counters to show; if no times are given, those of the runs are used.
  attribution_inputs hardware;
  bool strict = false;
  bool quiet = false;
};

/// Writes a self-contained page, which needs no network. Returns the exit status; throws
/// input_error and usage_error.
int run_report(const report_options& options, std::ostream& out, std::ostream& err);

/// JSON for an HTML script element: escapes <, >, & and the line ends that only JavaScript knows,
/// so that no text in it can end the element.
std::string script_safe(std::string_view json);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_HPP
