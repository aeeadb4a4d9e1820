// Pools several runs, separately for each loader, as one side of a comparison.
#ifndef LOTUS_TOOL_COMPARISON_POOLED_RUNS_HPP
#define LOTUS_TOOL_COMPARISON_POOLED_RUNS_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/diagnostics.hpp"
#include "comparison/comparison.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/quantities.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Durations of one operation, or of one quantity of batches such as the wait, from several runs.
class pooled_times {
 public:
  /// Adds the durations of one run.
  /// @param cpu  the sum of the CPU times of all these durations.
  void add(const value_blocks& durations, const std::optional<cpu_split>& cpu);

  const value_blocks& durations() const noexcept { return durations_; }
  std::size_t count() const noexcept { return durations_.count(); }
  /// Returns the mean of each run that has any values.
  const std::vector<double>& run_means_ns() const noexcept { return run_means_ns_; }
  std::optional<double> mean_ns() const;  ///< mean of all values; nullopt if there are none
  /// Returns the mean CPU time of all values; nullopt if there are no values, or if the CPU time is
  /// unknown for one of the runs.
  std::optional<double> mean_cpu_ns() const;

 private:
  value_blocks durations_;  // all durations in ns
  std::vector<double> run_means_ns_;
  double cpu_ns_ = 0;
  bool cpu_known_ = true;
};

/// Calls of one aggregated operation, which are counted and summed but not recorded, from several
/// runs.
class pooled_counts {
 public:
  void add(const aggregated_op& op);

  std::size_t count() const noexcept { return static_cast<std::size_t>(count_); }
  /// Returns the mean of each run that has any calls.
  const std::vector<double>& run_means_ns() const noexcept { return run_means_ns_; }
  std::optional<double> mean_ns() const;
  static std::optional<double> mean_cpu_ns() { return std::nullopt; }

 private:
  double count_ = 0;
  double total_ns_ = 0;
  std::vector<double> run_means_ns_;
};

/// Times and capacity of one stage, from several runs.
class pooled_stage {
 public:
  void add(double mean_service_ns, std::size_t numbers, std::optional<double> capacity_per_s);

  /// Returns the mean time that one item or batch spends in the stage.
  std::optional<double> service_ns() const;
  /// Returns the mean capacity of the runs; nullopt if the capacity of one of the runs is unknown.
  std::optional<double> capacity_per_s() const;

 private:
  double service_ns_ = 0;
  double numbers_ = 0;
  double capacity_ = 0;
  double runs_ = 0;
  bool capacity_known_ = true;
};

/// Sums over the calls of one operation in several runs, to find its share in preprocessing.
struct pooled_work {
  double self_ns = 0;
  double calls = 0;
  /// Whether the operation is also called by threads that build no batches. If so, its share in
  /// preprocessing is unknown.
  bool elsewhere = false;
};

/// Values by name, in order of first appearance.
template <class Pooled>
struct pooled_by_name {
  std::vector<std::string> names;
  std::unordered_map<std::string, Pooled> of;

  Pooled& operator[](const std::string& name) {
    const auto [at, is_new] = of.try_emplace(name);
    if (is_new) names.push_back(name);
    return at->second;
  }
};

struct pooled_loader {
  /// For each stage: the different numbers of threads that it had in the runs.
  std::map<std::string, std::set<std::size_t>> stage_threads;
  pooled_by_name<pooled_times> ops;
  pooled_by_name<pooled_counts> aggregated;
  std::map<quantity, pooled_times> quantities;
  pooled_by_name<pooled_stage> stages;
  std::map<std::string, pooled_work> work;  ///< work of each operation, by the operation's name
  double batches = 0;                       ///< number of preprocessed batches
  std::size_t runs = 0;
  std::vector<double> batches_per_s;  ///< measured throughput of each run that has one
  std::set<std::size_t> workers;  ///< the different numbers of preprocessing threads in the runs
  bool bound = false;             ///< whether such threads were bound to some of the CPUs
};

struct pooled_runs {
  std::map<std::string, pooled_loader> loaders;  ///< loaders by name; "" is the default loader
  record_counts records;           ///< counts of records; each process is counted once
  std::set<std::string> machines;  ///< names of machines such as "node17", if recorded
  std::set<double> cpus;           ///< numbers of CPUs that the runs could use, if recorded
};

/// Pools runs; a run that occurs twice is pooled once. Throws input_error.
/// @param only  the operations to pool; empty for all.
pooled_runs pool(const std::vector<run_files>& runs, const compared_sides& sides,
                 const name_table& only, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_POOLED_RUNS_HPP
