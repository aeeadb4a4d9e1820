// Writes the report's data about functions and hardware counters of each operation.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP

#include <map>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "log/folder/log_files.hpp"
#include "mapping/attribution.hpp"

namespace lotus::tool {

class hardware_data {
 public:
  /// Adds functions and counters from the samples that `map record` stored with a run's logs. Does
  /// nothing if there are no samples. Throws input_error.
  void add_samples_of_run(const run_files& run, const std::string& title);

  /// Adds the functions of the mapping that `options` names, and for each operation the values of
  /// the counter tables that `options` names. Throws input_error and usage_error.
  void add_mapping(const attribution_inputs& options);

  /// Writes {"functions":[{"name","of_run","unit","note",
  /// "ops":[{"name","total","functions":[[key,value],…],"more"}]}],
  /// "counters":[{"name","configs":[…],"ops":[{"name","values":[…]}]}]}.
  void write(json_writer& json) const;

 private:
  struct counter {
    std::string name;
    std::vector<std::string> configs;
    /// For each operation, its values in the order of `configs`; values at the end may be missing.
    std::map<std::string, std::vector<double>> ops;
  };

  void count(const std::string& counter_name, const std::string& config, const std::string& op,
             double value);

  std::vector<std::string> functions_;  ///< a JSON object for each source of functions
  std::vector<counter> counters_;       ///< counters in the order of their addition
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP
