// Defines a profiler's report of one run: how much time or how many counted events each function
// took.
#ifndef LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
#define LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP

#include <map>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Returns "function|module" as used in a mapping; the module's folders are removed.
std::string function_key(std::string_view function, std::string_view module);

/// Whether a function belongs to Lotus itself. Such functions are ignored, because they are not
/// part of any operation: most of their samples are from the random wait before a sampled
/// operation.
bool is_own_function(std::string_view function);

/// The report of one run of an operation.
struct function_report {
  std::string unit;      ///< unit of the values, such as "s", "ms", "samples" or "Ir"
  std::string metric;    ///< what the values are, such as "CPU_TIME", if the report says so
  bool partial = false;  ///< whether the report lists only the functions with the highest values
  std::map<std::string, double> functions;  ///< values by function_key()
  /// The part of the values in `functions` that belongs to inlined code: by function_key(), then by
  /// inlined function.
  std::map<std::string, std::map<std::string, double>> inlined;

  void add(std::string_view function, std::string_view module, double value) {
    if (!is_own_function(function)) functions[function_key(function, module)] += value;
  }
};

/// The reports in one file, by operation. Most profilers do not know the operation; then the key is
/// empty, and the folder of the file has the operation's name.
using reports_by_op = std::multimap<std::string, function_report>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
