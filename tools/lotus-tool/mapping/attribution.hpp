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

/// How the numbers of a function that several operations use are split among them.
enum class weighting {
  elapsed,  ///< by the operations' elapsed time: T_op / sum of T_op' (as in the paper)
  mix,      ///< by T_op times the function's share inside the operation (the paper's future work)
};

struct attribution_inputs {
  std::string mapping;
  std::vector<std::string> counters;
  std::vector<std::string> traces;  ///< folders of runs; empty if `elapsed` is given
  std::string elapsed;  ///< path of a table with the seconds per configuration and operation
  weighting weights = weighting::elapsed;
  std::string prefix = std::string(default_prefix);
};

/// Elapsed time per operation. Any unit works, because only ratios matter.
using elapsed_by_op = std::map<std::string, double>;

/// The numbers of one configuration, per operation: as many values as the table has metrics. Shares
/// of clockticks are stored multiplied by the clockticks; metric_value() divides.
struct attribution {
  std::string name;
  std::vector<metric> metrics;
  std::map<std::string, std::vector<double>> ops;
  std::vector<double> outside;  ///< numbers of functions that the mapping does not contain
};

/// @param elapsed  an operation that is missing here counts as having run for 0 s.
attribution attribute(const counter_table& counters, const mapping& m, const elapsed_by_op& elapsed,
                      weighting weights);

/// Converts a metric for display: a share to percent of the clockticks, CPI and frequency to the
/// ratio of their sums.
double metric_value(const attribution& a, const std::vector<double>& values, std::size_t index);

/// Attributes the numbers of all counter tables. Throws input_error and usage_error.
std::vector<attribution> attribute_all(const attribution_inputs& inputs,
                                       diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_ATTRIBUTION_HPP
