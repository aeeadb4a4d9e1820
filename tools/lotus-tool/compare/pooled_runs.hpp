// One side of a comparison: several runs taken together, each loader for itself.
#ifndef LOTUS_TOOL_COMPARE_POOLED_RUNS_HPP
#define LOTUS_TOOL_COMPARE_POOLED_RUNS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "compare/compare.hpp"
#include "log/process_info.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/quantities.hpp"
#include "model/times/value_blocks.hpp"

namespace lotus::tool {

/// Durations of one operation or quantity.
class pooled_times {
 public:
  /// @param cpu  of all of them.
  void add(const value_blocks& durations, const std::optional<cpu_split>& cpu);

  const value_blocks& durations() const noexcept { return durations_; }
  std::optional<double> mean_ns() const;  ///< missing of none
  /// Missing also where one run does not know its CPU time.
  std::optional<double> mean_cpu_ns() const;

 private:
  value_blocks durations_;  // in ns
  double cpu_ns_ = 0;
  bool cpu_known_ = true;
};

/// A stage of several runs.
class pooled_stage {
 public:
  void add(double mean_service_ns, std::size_t numbers, std::optional<double> capacity_per_s);

  /// Of all items or batches.
  std::optional<double> service_ns() const;
  /// The runs' mean; missing where one has none.
  std::optional<double> capacity_per_s() const;

 private:
  double service_ns_ = 0;
  double numbers_ = 0;
  double capacity_ = 0;
  double runs_ = 0;
  bool capacity_known_ = true;
};

/// A name's times or stage, by order of first appearance.
template <class Pooled>
struct pooled_by_name {
  std::vector<std::string> names;
  std::map<std::string, Pooled> of;

  Pooled& operator[](const std::string& name) {
    const auto [at, is_new] = of.try_emplace(name);
    if (is_new) names.push_back(name);
    return at->second;
  }
};

struct pooled_loader {
  pooled_by_name<pooled_times> ops;
  std::map<quantity, pooled_times> quantities;
  pooled_by_name<pooled_stage> stages;
};

struct pooled_runs {
  std::map<std::string, pooled_loader> loaders;  ///< by name; "" is the default one
  record_counts records;                         ///< of each process once
};

/// Every run in `dir` and below it. Throws input_error.
pooled_runs pool(const std::string& dir, const compare_options& options,
                 diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARE_POOLED_RUNS_HPP
