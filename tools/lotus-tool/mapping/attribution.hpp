// Attributes hardware counters to operations (Figure 6 of the Lotus paper).
#ifndef LOTUS_TOOL_MAPPING_ATTRIBUTION_HPP
#define LOTUS_TOOL_MAPPING_ATTRIBUTION_HPP

#include <map>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/counters.hpp"

namespace lotus::tool {

/// How the counter values of a function are split if several operations use it.
enum class weighting {
  elapsed,  ///< in proportion to the operations' times: T_op / sum of T_op' (as in the paper)
  mix,      ///< in proportion to T_op * the function's share in it (the paper's future work)
};

struct attribution_inputs {
  std::string mapping;
  std::vector<std::string> counters;
  /// Folders of runs with the operations' times; empty if `elapsed` is given.
  std::vector<std::string> traces;
  std::string elapsed;  ///< path of a table with seconds by configuration and operation
  weighting weights = weighting::elapsed;
  std::string prefix = std::string(default_prefix);
};

/// Time by operation. The unit does not matter, because only ratios are used.
using elapsed_by_op = std::map<std::string, double>;

/// The values of one table of hardware counters, split among operations: one value per metric for
/// each operation. Shares of clockticks are stored as clockticks; metric_value() converts them
/// back.
struct attribution {
  std::string name;
  std::vector<metric> metrics;
  std::map<std::string, std::vector<double>> ops;
  std::vector<double> outside;  ///< values of functions that belong to no operation
};

/// Splits the values in one table of hardware counters among the operations of a mapping.
/// @param elapsed  time by operation; a missing operation counts as 0.
attribution attribute(const counter_table& counters, const mapping& m, const elapsed_by_op& elapsed,
                      weighting weights);

/// Returns the value of a metric for display: for a share of the clockticks, a percentage; for CPI
/// (clockticks per instruction) and frequency, the ratio of the two sums that define them.
double metric_value(const attribution& a, const std::vector<double>& values, std::size_t index);

/// Splits the values in all tables of hardware counters among operations. Throws input_error and
/// usage_error.
std::vector<attribution> attribute_all(const attribution_inputs& inputs,
                                       diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_ATTRIBUTION_HPP
