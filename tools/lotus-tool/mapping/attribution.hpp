// Hardware numbers per operation (Figure 6 of the Lotus paper).
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

/// How a function of several operations is split among them.
enum class weighting {
  elapsed,  ///< by the operations' elapsed time: T_op / sum of T_op' (the paper's)
  mix,      ///< by T_op times the function's share inside the operation (its future work)
};

struct attribution_inputs {
  std::string mapping;
  std::vector<std::string> counters;
  std::vector<std::string> traces;  ///< either these: folders of runs
  std::string elapsed;              ///< or this: a table of config and seconds per operation
  weighting weights = weighting::elapsed;
  std::string prefix = std::string(default_prefix);
};

/// Elapsed time per operation, in any one unit: only ratios count.
using elapsed_by_op = std::map<std::string, double>;

/// Numbers of one configuration, per operation; as many values as the table's metrics. Shares of
/// clockticks are left multiplied by them; see metric_value().
struct attribution {
  std::string name;
  std::vector<metric> metrics;
  std::map<std::string, std::vector<double>> ops;
  std::vector<double> outside;  ///< of functions that the mapping does not know
};

/// @param elapsed  an operation that is missing in it has run for no time.
attribution attribute(const counter_table& counters, const mapping& m, const elapsed_by_op& elapsed,
                      weighting weights);

/// A metric as people read it: shares in per cent of the clockticks, CPI and frequency of sums.
double metric_value(const attribution& a, const std::vector<double>& values, std::size_t index);

/// All of the counters' tables. Throws input_error and usage_error.
std::vector<attribution> attribute_all(const attribution_inputs& inputs,
                                       diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_ATTRIBUTION_HPP
