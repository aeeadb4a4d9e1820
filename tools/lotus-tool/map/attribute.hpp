// lotus-tool map attribute: hardware numbers per operation (Figure 6 of the Lotus paper).
#ifndef LOTUS_TOOL_MAP_ATTRIBUTE_HPP
#define LOTUS_TOOL_MAP_ATTRIBUTE_HPP

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "map/build.hpp"
#include "map/counters.hpp"
#include "map/mapping.hpp"

namespace lotus::tool {

/// How a function of several operations is split among them.
enum class weighting {
  elapsed,  ///< by the operations' elapsed time: T_op / sum of T_op' (the paper's)
  mix,      ///< by T_op times the function's share inside the operation (its future work)
};

struct map_attribute_options {
  std::string mapping;
  std::vector<std::string> counters;
  std::vector<std::string> traces;  ///< either these: folders of runs
  std::string elapsed;              ///< or this: a table of config and seconds per operation
  weighting weights = weighting::elapsed;
  std::string prefix = std::string(default_prefix);
  print_as print = print_as::table;
  bool quiet = false;
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
std::vector<attribution> attribute_all(const map_attribute_options& options, diagnostics& said);

void print_attributions(const std::vector<attribution>& all, print_as print, std::ostream& out);

int run_map_attribute(const map_attribute_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAP_ATTRIBUTE_HPP
