// Diagnoses a run: determines the verdict and the measurements that support it.
#ifndef LOTUS_TOOL_FINDINGS_DIAGNOSIS_HPP
#define LOTUS_TOOL_FINDINGS_DIAGNOSIS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/analysis.hpp"
#include "base/diagnostics.hpp"
#include "describe/described.hpp"
#include "findings/checks/check.hpp"
#include "findings/facts/changes.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/finding.hpp"
#include "findings/gains.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/process_info.hpp"
#include "model/calls/call_profile.hpp"
#include "model/figures.hpp"
#include "model/path/critical_path.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_data.hpp"
#include "model/worker_time.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {

/// The 95 % confidence interval of a rate.
struct rate_interval {
  double low = 0;
  double high = 0;
};

struct diagnosis {
  std::string dir;
  std::string loader;             ///< name of the loader; "" for the default loader
  std::vector<check> checks;      ///< checks that failed on this run
  std::optional<verdict> is;      ///< the verdict; nullopt if the run allows none
  phrase why_silent;              ///< the reason why there is no verdict
  std::string stage;              ///< the limiting stage's name, if the verdict is stage_bound
  wait_parts waits;               ///< the consumer's waits, by what was missing
  std::vector<finding> findings;  ///< what the recording shows, in the order of finding_rules()
  /// Whether the simulation explains the run, so that changes are predicted. If not, the verdict
  /// comes from the findings.
  bool predicted = false;
  std::vector<stage_figures> stages;
  std::optional<limiting_lock> lock;  ///< the lock, if the verdict is lock_bound
  run_blocked_on blocked_on;          ///< what each operation waited for; empty if not recorded
  std::vector<bound_gain> gains;
  std::vector<suggestion> suggestions;  ///< suggested changes, most valuable first
  std::vector<suggestion> possible;     ///< changes whose gain is uncertain, or that need more CPUs
  std::vector<phrase> assumptions;      ///< assumptions behind the first suggestion
  std::vector<phrase> warnings;         ///< warnings to show before the verdict
  /// What limits the number of useful workers, see limit_words(); empty if nothing does.
  phrase limit;
  bool limit_of_stage = false;                     ///< whether `limit` is about the limiting stage
  std::vector<accelerator_analysis> accelerators;  ///< see look_at_accelerators()
  /// Whether the accelerators were busy for such a large share of the run that no change of the
  /// input pipeline can gain much.
  bool accelerators_busy = false;
  std::vector<path_gain> path_gains;
  critical_path path;
  bool pushed = false;  ///< whether the run has no consumer; a batch then ends with its last stage
  std::size_t discarded = 0;     ///< number of batches that were built but never received
  bool limited_by_cpus = false;  ///< whether twice as many CPUs would gain at least 5 %
  /// Factor by which twice as many workers make the run faster; nullopt if each stage has its own
  /// threads.
  std::optional<double> more_workers_gain;
  /// The predicted effect of steps that take half the time. Only set if the run is consumer-bound
  /// and this gains at least 5 %.
  std::optional<suggestion> faster_step;
  /// Whether batches are never built during a step: the consumer builds them itself, or another
  /// thread begins a batch only when the consumer asks for it.
  bool makes_itself = false;
  bool thread_for_each = false;  ///< whether each batch was built by a thread of its own
  /// Only if makes_itself is true: whether another thread than the consumer builds the batches.
  bool on_demand = false;
  /// The number of threads that build batches and live at the same time; `workers` of them, or
  /// fewer, build one at once. 0 if several threads build each batch together, or each thread is
  /// short.
  std::size_t living_workers = 0;
  /// Whether recorded work uses or waits for CPUs for more than a small part of its time.
  bool needs_cpus = true;
  std::optional<double> cpus;  ///< number of CPUs that the run was allowed to use
  /// CPU time of all threads of the run's processes, in ns; nullopt if unknown. unrecorded_cpu is
  /// the share (0..1) of this time that was used outside of recorded work.
  std::optional<double> cpu_ns;
  double unrecorded_cpu = 0;
  /// Mean number of CPUs that other programs used; nullopt if unknown.
  std::optional<double> others_cpus;
  std::size_t batches = 0;
  /// Number of received batches, including those left out by --skip-batches.
  std::size_t received = 0;
  std::size_t workers = 0;  ///< number of workers that existed at the same time
  double wait_ns = 0;  ///< time of the consumer's waits, without batches left out by --skip-batches
  double step_ns = 0;  ///< time of the consumer's steps, without batches left out by --skip-batches
  double mean_step_ns = 0;
  double mean_preprocess_ns = 0;
  /// Whether the threads that built batches waited for a CPU longer than they ran.
  bool queued_longer_than_ran = false;
  /// Share (0..1) of these threads' time, without waits for a CPU, in which they were blocked or
  /// asleep.
  double blocked_of_work = 0;
  double std_preprocess_ns = 0;
  double wait_share = 0;          ///< share (0..1) of the consumer's time that it waits for batches
  double head_of_line_share = 0;  ///< share of waits due to head-of-line blocking, 0..1
  /// Length of the run in ns, from which `achieved` was computed; 0 if unknown.
  double run_ns = 0;
  std::optional<double> achieved;  ///< throughput in batches per second over the whole run
  std::optional<double> steady;    ///< throughput in batches per second in steady state
  std::optional<double> preprocessing_capacity;  ///< capacity of the slowest stage
  std::string slowest_stage;                ///< name of the slowest stage, if it is a named stage
  std::optional<double> consumer_capacity;  ///< capacity of the consumer
  /// The 95 % confidence intervals of preprocessing_capacity and consumer_capacity; nullopt if
  /// there are so many batches that the interval is narrow.
  std::optional<rate_interval> preprocessing_interval;
  std::optional<rate_interval> consumer_interval;
  double samples_per_batch = 0;  ///< number of samples in a batch; 0 if unknown
  /// Operations with their shares of the workers' time, largest share first.
  std::vector<op_share> ops;
  /// For each of the operations with the largest shares (the first elements of `ops`): the factor
  /// by which the run would be faster if the operation took no time.
  std::vector<double> gains_without_ops;
  operation_totals operations;  ///< only for a run without batches
  /// Only for a run without batches: time from the first start to the last end.
  std::int64_t recorded_ns = 0;
  /// Operations that were counted but not recorded call by call. They are not in `ops`, but the
  /// times of batches and steps include theirs.
  std::vector<figures> aggregated;
  std::vector<slow_sample> slow_samples;  ///< calls that took unusually long, slowest first
  /// Workers that need longer for a batch than others, slowest first.
  std::vector<slow_worker> slow_workers;
  std::string growing;  ///< part whose times grow all through the run; "": none
  record_counts records;

  bool has(std::string_view check_id) const noexcept;
};

/// The members of a diagnosis in JSON.
const description<diagnosis>& description_of(const diagnosis*);

class what_if;

/// The diagnosis of a run, or the reason why there is none: its logs cannot be read or are empty.
struct judgement {
  std::optional<diagnosis> found;
  phrase why_not;
  /// The simulation of the run, which must outlive it; nullptr if it cannot be simulated.
  std::shared_ptr<const what_if> simulated;
};

/// Whether a diagnosis predicts the effects of changes, which takes most of its time.
enum class predictions : std::uint8_t { all, none };

/// Diagnoses one run. For each possible bottleneck, simulates the run with this bottleneck reduced
/// (see gains_of()); the verdict is the bottleneck whose reduction shortens the run most. There is
/// no verdict if necessary records are missing, if a failed check shows that a verdict would be
/// unreliable, or if the simulation of the unmodified run is off by more than 15 %.
/// The function also computes, with W simultaneous workers (see workers_at_once()):
/// - preprocessing capacity = W / mean preprocess time, or the lowest capacity of the named stages
/// - consumer capacity = 1 / mean step
/// - wait share = waits / (waits + steps)
/// - head-of-line share = the part of the waits during which a later batch of the same epoch was
///   ready
/// @param run  a run that was read with diagnosis_parts, or with more parts.
judgement diagnose_run(const run_data& run, std::size_t skip_batches, diagnostic_log& diagnostics,
                       predictions wanted = predictions::all);
inline constexpr run_parts diagnosis_parts = checked_parts;

/// Adds what the traces of accelerators in the run's folder show.
void look_at_accelerators(diagnosis& of, const run_data& run, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_DIAGNOSIS_HPP
