// Readers of profilers' text reports; read_reports() chooses one.
#ifndef LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "mapping/read/function_report.hpp"

namespace lotus::tool {

// Each looks_like_… checks only the beginning of a file. Each read_… throws input_error with `path`
// and the line number.

bool looks_like_vtune(std::string_view text);
/// Reads `vtune -report hotspots -format csv -csv-delimiter comma`, in seconds. Columns vary by
/// run, so they are found by name.
function_report read_vtune(const std::string& path, std::string_view text);

bool looks_like_uprof(std::string_view text);
/// Reads the hottest functions of `AMDuProfCLI report -f csv`, 4.0 and 5.x. Values are about ms.
function_report read_uprof(const std::string& path, std::string_view text);

bool looks_like_perf(std::string_view text);
/// The table of one event.
struct perf_table {
  std::string event;  ///< empty if the report does not show it
  function_report report;
};

/// Reads `perf report -t '|'` with the sort keys dso and symbol: one table per event. Values are
/// samples if -n was given, else percent. Empty if nothing was sampled.
std::vector<perf_table> read_perf(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
