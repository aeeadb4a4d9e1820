// Readers of profilers' text reports; function_report.hpp picks one.
#ifndef LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "mapping/read/function_report.hpp"

namespace lotus::tool {

// Each looks_like_… judges by the beginning of a file, each read_… throws input_error with `path`
// and the line.

bool looks_like_vtune(std::string_view text);
/// `vtune -report hotspots -format csv -csv-delimiter comma`. Columns vary by run, so they are
/// found by their names. Seconds.
function_report read_vtune(const std::string& path, std::string_view text);

bool looks_like_uprof(std::string_view text);
/// `AMDuProfCLI report -f csv`, 4.0 and 5.x: the table of the hottest functions. Weights, about ms.
function_report read_uprof(const std::string& path, std::string_view text);

bool looks_like_perf(std::string_view text);
/// One event's table.
struct perf_table {
  std::string event;  ///< empty where the report does not say it
  function_report report;
};

/// `perf report -t '|'` with the sort keys dso and symbol: a table per event. Samples where -n gave
/// them, else %. None where nothing was sampled.
std::vector<perf_table> read_perf(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
