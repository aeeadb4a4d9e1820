// What the report shows of functions and hardware counters behind operations.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "log/folder/log_files.hpp"
#include "mapping/attribution.hpp"

namespace lotus::tool {

class hardware_data {
 public:
  /// Functions and counters from the samples that `map record` left beside a run's logs, if any.
  /// Throws input_error.
  void add_samples_beside(const run_files& run, const std::string& title);

  /// The functions of a mapping, and of its counters' tables what they say per operation. Throws
  /// input_error and usage_error.
  void add_mapping(const attribution_inputs& options);

  /// {"functions":[{"name","of_run","unit","note","ops":[{"name","total","functions":[[key,value],…],"more"}]}],
  ///  "counters":[{"name","configs":[…],"ops":[{"name","values":[…]}]}]}
  void write(json_writer& json) const;

 private:
  struct counter {
    std::string name;
    std::vector<std::string> configs;
    std::map<std::string, std::vector<double>> ops;  ///< as many values as configs, or fewer
  };

  void count(const std::string& counter_name, const std::string& config, const std::string& op,
             double value);

  std::vector<std::string> functions_;  ///< sources as JSON, as they came
  std::vector<counter> counters_;       ///< as they came
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_REPORT_HARDWARE_HPP
