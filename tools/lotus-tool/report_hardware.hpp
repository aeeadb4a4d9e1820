// What the report shows of functions and hardware counters behind operations.
#ifndef LOTUS_TOOL_REPORT_HARDWARE_HPP
#define LOTUS_TOOL_REPORT_HARDWARE_HPP

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "log_files.hpp"
#include "map/attribute.hpp"

namespace lotus::tool {

class hardware_data {
 public:
  /// Functions and counters from the samples that `map record` left beside a run's logs, if any.
  /// Throws input_error.
  void add_samples_beside(const run_files& run, const std::string& title);

  /// The functions of a mapping, and of its counters' tables what they say per operation. Throws
  /// input_error and usage_error.
  void add_mapping(const map_attribute_options& options);

  /// {"functions":[{"name","unit","note","ops":[{"name","total","functions":[[key,value],…],"more"}]}],
  ///  "counters":[{"name","configs":[…],"ops":[{"name","values":[…]}]}]}
  std::string json() const;

 private:
  struct counter {
    std::string name;
    std::vector<std::string> configs;
    std::map<std::string, std::vector<double>> ops;  ///< as many values as configs, or fewer
  };

  static std::string counter_json(const counter& c);
  void count(const std::string& counter_name, const std::string& config, const std::string& op,
             double value);

  std::string functions_;
  std::vector<counter> counters_;  ///< as they came
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPORT_HARDWARE_HPP
