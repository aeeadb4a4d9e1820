// Defines a profiler's report of one run: how much time or how many counted events each function
// took. Makes the names of functions, modules and events comparable, which profilers spell
// differently.
#ifndef LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP
#define LOTUS_TOOL_MAPPING_READ_FUNCTION_REPORT_HPP

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Whether an event measures CPU time in ns, as cpu-clock and task-clock do.
bool is_cpu_time(std::string_view event) noexcept;

/// Returns the index of the event that best measures time: an event of CPU time, else cycles, else
/// the first event. Returns 0 if the list is empty.
std::size_t index_of_time_event(const std::vector<std::string>& events) noexcept;

/// Removes parameters, return type and "[clone …]" from a demangled name of VTune or perf: "double
/// img::scale<int>(int)" becomes "img::scale<int>".
std::string bare_function(std::string_view function);

/// Removes the version from a symbol: "memcpy@@GLIBC_2.14" becomes "memcpy". Does not change
/// "read@plt" and VTune's "func@0x3fd7b0", which have no version.
std::string_view without_version(std::string_view symbol) noexcept;

/// Returns the form of a function's name that is used for comparisons: like bare_function(), but
/// also without version and without suffixes such as ".isra.0", which not all profilers print.
std::string comparable_function(std::string_view function);

/// The name for all functions in a module without symbols.
inline constexpr std::string_view no_symbols = "[no symbols]";

/// Whether a module, given as a result of comparable_module(), is a program and neither a library
/// nor a part of the kernel.
bool is_program(std::string_view module);

/// Returns the form of a module's name that is used for comparisons: the file name without the
/// version ("libjpeg.so.9.5.0" becomes "libjpeg.so"). Empty for "[Unknown]".
std::string comparable_module(std::string_view module);

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
