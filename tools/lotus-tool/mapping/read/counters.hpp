// Reads hardware counters per function of a whole run.
#ifndef LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
#define LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// How the values of several functions are combined.
enum class metric_kind {
  sum,        ///< added: seconds, clockticks, misses
  share,      ///< percent of the function's clockticks: multiplied by them, then added
  cpi,        ///< ratio of the sums: clockticks per instruction
  frequency,  ///< ratio of the sums: clockticks per second, in GHz
};

struct metric {
  std::string name;
  metric_kind kind = metric_kind::sum;
};

struct counted_function {
  std::string function;
  std::string module;          ///< empty if the table does not show it
  std::vector<double> values;  ///< one per metric
};

/// One table of counters, which is one configuration of Figure 6.
struct counter_table {
  std::string name;  ///< the file's name without folder and extension
  std::vector<metric> metrics;
  std::vector<counted_function> functions;
  /// Whether the values are totals of the process, not per function, as those of perf stat.
  bool whole_process = false;

  std::optional<std::size_t> find(std::string_view metric) const noexcept;
};

/// Reads VTune's TAB-separated microarchitecture table, perf report -t, perf stat -x, callgrind's
/// profile or callgrind_annotate, and recognizes the kind by its content. Throws input_error.
counter_table read_counters(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
