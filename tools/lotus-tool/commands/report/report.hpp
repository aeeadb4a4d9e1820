// lotus-tool report: writes one HTML page with everything known about some runs.
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
  std::string output;  ///< path of the page; "-" is standard output
  std::string prefix{default_prefix};
  /// Number of batches at the beginning of every epoch that the verdict ignores.
  std::size_t skip_batches = 0;
  /// A mapping and tables of hardware counters to show. The counters are split among operations
  /// with the help of the operations' times, which are taken from the runs if `hardware.elapsed`
  /// names no table of times.
  attribution_inputs hardware;
  bool strict = false;
  bool quiet = false;
};

/// Writes an HTML page that loads nothing from the network. Returns the exit status. Throws
/// input_error, usage_error.
int run_report(const report_options& options, std::ostream& out, std::ostream& err);

/// Makes JSON safe inside an HTML script element: escapes <, >, & and the two characters that end a
/// line only in JavaScript, so that no text in the JSON can end the element.
std::string script_safe(std::string_view json);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_HPP
