// Diagnoses a run: the verdict and the measurements that support it.
#ifndef LOTUS_TOOL_VERDICT_DIAGNOSIS_HPP
#define LOTUS_TOOL_VERDICT_DIAGNOSIS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/process_info.hpp"
#include "model/calls/operation_totals.hpp"
#include "model/figures.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "model/worker_time.hpp"
#include "verdict/check.hpp"
#include "verdict/gains.hpp"
#include "verdict/slow_workers.hpp"
#include "verdict/verdict.hpp"

namespace lotus::tool {

/// The 95 % confidence interval of a rate.
struct rate_interval {
  double low = 0;
  double high = 0;
};

struct diagnosis {
  std::string dir;
  std::string loader;         ///< "" for the default loader
  std::vector<check> checks;  ///< failed checks only
  std::optional<verdict> is;  ///< the verdict; missing if a check is unsafe
  std::string why_silent;     ///< why there is no verdict
  std::string stage;          ///< name of the stage, if the verdict is stage_bound
  std::vector<bound_gain> gains;
  std::vector<move> moves;               ///< most valuable first
  std::vector<move> possible;            ///< may gain nothing, or cost money
  std::vector<std::string> assumptions;  ///< on which the first of `moves` depends
  std::vector<std::string> warnings;     ///< to be shown before the verdict
  std::string limit;                     ///< limit_text()
  std::vector<attack> attacks;
  critical_path path;
  bool pushed = false;           ///< there is no consumer: a batch is done after its last stage
  std::size_t discarded = 0;     ///< batches that were built but never received
  bool limited_by_cpus = false;  ///< twice as many CPUs would gain at least 5 %
  /// Gain of the whole run with twice as many workers; missing if stages have their own threads.
  std::optional<double> more_workers_gain;
  bool makes_itself = false;   ///< see recorded_pipeline
  bool on_demand = false;      ///< see recorded_pipeline
  std::optional<double> cpus;  ///< CPUs that the run was allowed to use
  std::size_t batches = 0;
  std::size_t received = 0;  ///< batches that were received, including skipped ones
  std::size_t workers = 0;   ///< that existed at the same time
  double wait_ns = 0;        ///< sum over the counted batches
  double step_ns = 0;        ///< likewise
  double mean_step_ns = 0;
  double mean_preprocess_ns = 0;
  double std_preprocess_ns = 0;
  double wait_share = 0;          ///< part of the consumer's time, 0..1
  double head_of_line_share = 0;  ///< part of the waiting, 0..1
  double run_ns = 0;  ///< length of the run that `achieved` is about; 0 if it is unknown
  std::optional<double> achieved;                       ///< batches per second, over the whole run
  std::optional<double> steady;                         ///< batches per second, in steady state
  std::optional<double> preprocessing_capacity;         ///< batches per second of the slowest stage
  std::string slowest_stage;                            ///< its name, if it is a named stage
  std::optional<double> consumer_capacity;              ///< batches per second
  std::optional<rate_interval> preprocessing_interval;  ///< only if there are few batches
  std::optional<rate_interval> consumer_interval;
  double samples_per_batch = 0;           ///< 0 if unknown
  std::vector<op_share> ops;              ///< largest share first
  std::vector<double> gains_without_ops;  ///< gain of the whole run if the operation cost nothing;
                                          ///< for the first of `ops`
  std::vector<operation_total> operations;  ///< only for a run without batches
  std::int64_t recorded_ns = 0;             ///< likewise: from the first start to the last end
  std::vector<figures> aggregated;  ///< calls that were counted but not recorded; their time is
                                    ///< part of the figures above
  std::vector<slow_sample> slow_samples;  ///< slowest first
  std::vector<slow_worker> slow_workers;  ///< slowest first
  record_counts records;

  bool has(std::string_view check_id) const noexcept;
};

/// A run's diagnosis; nullopt if its logs cannot be read or are empty.
struct judgement {
  std::optional<diagnosis> found;
  std::string why_not;
};

/// Diagnoses one run by simulating it with each of its bounds loosened (gains_of()): the largest
/// gain is the verdict. There is no verdict if records that it needs are missing, a check is
/// unsafe, or the simulation of the unmodified run is off by more than 25 %.
///
/// It also computes, with W workers at once (workers_at_once()): preprocessing capacity = W / mean
/// preprocess time, or the lowest capacity of the stages if there are named ones; consumer capacity
/// = 1 / mean step; wait share = sum of waits / (sum of waits + sum of steps); head-of-line share =
/// the part of the waiting during which a later batch of the same epoch was ready.
/// @param run  read with diagnosis_parts, or more.
judgement diagnose_run(const run_data& run, std::size_t skip_batches, diagnostic_log& diagnostics);
inline constexpr run_parts diagnosis_parts = checked_parts;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_DIAGNOSIS_HPP
