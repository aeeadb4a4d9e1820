// What a profiler says of one run: functions and how much of the run was theirs.
#ifndef LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
#define LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP

#include <map>
#include <string>
#include <string_view>

#include "base/diagnostics.hpp"

namespace lotus::tool {

/// "function|module" as a mapping spells it: the module without its folders.
std::string function_key(std::string_view function, std::string_view module);

/// Functions of the library itself, which no report of an operation should name: above all the
/// random wait between resuming a collector and the operation.
bool is_own_function(std::string_view function);

/// One collected run of an operation.
struct function_report {
  std::string unit;                         ///< of the values: "s", "ms", "samples", "Ir"
  std::map<std::string, double> functions;  ///< by function_key()
  /// Of these, what was in code inlined into them: by function_key(), then the inlined function.
  std::map<std::string, std::map<std::string, double>> inlined;

  void add(std::string_view function, std::string_view module, double value) {
    if (!is_own_function(function)) functions[function_key(function, module)] += value;
  }
};

/// The runs in one file, by operation. Most profilers know of no operation: the key is empty then,
/// and the report's folder names it.
using reports_by_op = std::multimap<std::string, function_report>;

/// Whether a file of this name can be a report: no log, not JSON, and hidden only if it holds
/// samples.
bool is_report_name(std::string_view name) noexcept;

/// Reads a report of any kind that is known, told by its content: VTune's and uProf's CSV,
/// perf report -t, callgrind's profile and callgrind_annotate, samples of the built-in collector.
/// Of another kind: none, with a warning. Throws input_error, naming file and line.
reports_by_op read_reports(const std::string& path, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
