// Reads tables of hardware counters: the values of each function during a whole run.
#ifndef LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
#define LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// How a metric's values for several functions are combined.
enum class metric_kind {
  sum,        ///< values are added: seconds, clockticks, misses
  share,      ///< percent of clockticks: values are multiplied by the clockticks and added
  cpi,        ///< clockticks per instruction: the ratio of both sums
  frequency,  ///< clockticks per second, in GHz: the ratio of both sums
};

struct metric {
  std::string name;
  metric_kind kind = metric_kind::sum;
};

struct counted_function {
  std::string function;
  std::string module;          ///< module of the function; empty if the table does not contain it
  std::vector<double> values;  ///< one value for each metric
};

/// A table of hardware counters, usually of one run. Several tables may describe different
/// configurations of a program, as in Figure 6 of the Lotus paper.
struct counter_table {
  std::string name;  ///< name of the file without its folder and extension
  std::vector<metric> metrics;
  std::vector<counted_function> functions;
  /// Whether the values are totals of the process (perf stat) and not of single functions.
  bool whole_process = false;

  std::optional<std::size_t> find(std::string_view metric) const noexcept;
};

/// Reads VTune's TAB-separated microarchitecture table, or the output of perf report -t, perf stat
/// -x, or callgrind's profile. Recognizes the kind by the content. Throws input_error.
counter_table read_counters(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COUNTERS_HPP
