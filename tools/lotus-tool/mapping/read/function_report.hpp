// A profiler's report of one run: functions and how much of the run each took.
#ifndef LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
#define LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP

#include <map>
#include <string>
#include <string_view>

namespace lotus::tool {

/// "function|module" as spelled in a mapping: the module's name without its folders.
std::string function_key(std::string_view function, std::string_view module);

/// Whether a function belongs to our library. Such functions are not part of an operation, so they
/// are ignored. Most samples of them are from the random wait before the operation.
bool is_own_function(std::string_view function);

/// One collected run of an operation.
struct function_report {
  std::string unit;                         ///< of the values: "s", "ms", "samples", "Ir"
  std::map<std::string, double> functions;  ///< by function_key()
  /// The part of these values in inlined code: by function_key(), then by inlined function.
  std::map<std::string, std::map<std::string, double>> inlined;

  void add(std::string_view function, std::string_view module, double value) {
    if (!is_own_function(function)) functions[function_key(function, module)] += value;
  }
};

/// The runs in one file, by operation. Most profilers do not know the operation: then the key is
/// empty, and the report's folder is named after the operation.
using reports_by_op = std::multimap<std::string, function_report>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
