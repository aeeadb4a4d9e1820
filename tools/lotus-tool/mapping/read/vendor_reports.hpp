// Reads the text reports of profilers; read_reports() chooses the right function.
#ifndef LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
#define LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "mapping/read/function_report.hpp"

namespace lotus::tool {

// The functions looks_like_…() check only the beginning of a file. The functions read_…() throw
// input_error with `path` and the line number.

bool looks_like_vtune(std::string_view text);
/// Reads the output of `vtune -report hotspots -format csv -csv-delimiter comma`; values are in
/// seconds. Finds columns by name, because runs may have different columns.
function_report read_vtune(const std::string& path, std::string_view text);

bool looks_like_uprof(std::string_view text);
/// Reads the hottest functions in the output of `AMDuProfCLI report -f csv`, versions 4.0 and 5.x.
/// Values are in ms, but only approximate.
function_report read_uprof(const std::string& path, std::string_view text);

bool looks_like_perf(std::string_view text);
/// The functions of one event in a report of perf.
struct perf_table {
  std::string event;  ///< name of the event; empty if the report does not show it
  function_report report;
};

/// Reads the output of `perf report -t '|'` with the sort keys dso and symbol. Returns a table for
/// each event; none if there are no samples. Values are samples if perf had -n, else percent.
std::vector<perf_table> read_perf(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_VENDOR_REPORTS_HPP
