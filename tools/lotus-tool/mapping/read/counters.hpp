// Hardware numbers per function, of a whole run.
#ifndef LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
#define LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// How a metric of several functions becomes one.
enum class metric_kind {
  sum,        ///< added up: seconds, clockticks, misses
  share,      ///< per cent of the function's clockticks: multiplied by them before adding
  cpi,        ///< clockticks per instruction, of the sums
  frequency,  ///< clockticks per second, of the sums; in GHz
};

struct metric {
  std::string name;
  metric_kind kind = metric_kind::sum;
};

struct counted_function {
  std::string function;
  std::string module;          ///< empty where the table does not know it
  std::vector<double> values;  ///< as many as metrics
};

/// One table of counters: a configuration of Figure 6.
struct counter_table {
  std::string name;  ///< the file's, without folder and extension
  std::vector<metric> metrics;
  std::vector<counted_function> functions;
  /// Whether the numbers are those of the whole process, with no functions: perf stat.
  bool whole_process = false;

  std::optional<std::size_t> find(std::string_view metric) const noexcept;
};

/// Reads VTune's TAB-separated microarchitecture table, perf report -t, perf stat -x,
/// callgrind's profile or callgrind_annotate, told by content. Throws input_error.
counter_table read_counters(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
