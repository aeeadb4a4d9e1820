// What a run waits for: the verdict and what it rests on.
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

/// Where a rate lies with 95 % confidence.
struct rate_interval {
  double low = 0;
  double high = 0;
};

struct diagnosis {
  std::string dir;
  std::string loader;         ///< "" of the default one
  std::vector<check> checks;  ///< that failed
  std::optional<verdict> is;  ///< missing where a check is unsafe
  std::string why_silent;     ///< why it is missing
  std::string stage;          ///< where stage_bound, its name
  std::vector<bound_gain> gains;
  std::vector<move> moves;               ///< the first one first
  std::vector<move> possible;            ///< may gain nothing, or is for money
  std::vector<std::string> assumptions;  ///< that decide the first of the moves
  std::vector<std::string> warnings;     ///< that go before the verdict
  std::string limit;                     ///< limit_text()
  std::vector<attack> attacks;
  critical_path path;
  bool pushed = false;           ///< nobody takes the batches, which leave by their last stage
  std::size_t discarded = 0;     ///< batches that were made and not received
  bool limited_by_cpus = false;  ///< twice as many CPUs would gain 5 %
  /// Gain of the whole run with twice as many workers; missing where stages have their own threads.
  std::optional<double> more_workers_gain;
  bool makes_itself = false;   ///< as of recorded_pipeline
  bool on_demand = false;      ///< likewise
  std::optional<double> cpus;  ///< that the run might use
  std::size_t batches = 0;
  std::size_t received = 0;  ///< batches, skipped ones too
  std::size_t workers = 0;   ///< at once
  double wait_ns = 0;        ///< sum over all batches
  double step_ns = 0;        ///< sum
  double mean_step_ns = 0;
  double mean_preprocess_ns = 0;
  double std_preprocess_ns = 0;
  double wait_share = 0;          ///< of the consumer's time, 0..1
  double head_of_line_share = 0;  ///< of the waiting, 0..1
  double run_ns = 0;  ///< length of the run that `achieved` is about; 0 if it is unknown
  std::optional<double> achieved;                ///< batches per second, over the whole run
  std::optional<double> steady;                  ///< likewise, in steady state
  std::optional<double> preprocessing_capacity;  ///< batches per second, of the slowest stage
  std::string slowest_stage;                     ///< its name where it is a named one
  std::optional<double> consumer_capacity;       ///< batches per second
  std::optional<rate_interval> preprocessing_interval;  ///< where there are few batches
  std::optional<rate_interval> consumer_interval;
  double samples_per_batch = 0;  ///< 0 when unknown
  std::vector<op_share> ops;     ///< the largest share first
  std::vector<double>
      gains_without_ops;  ///< of the whole run, did it cost nothing; of the first ones
  std::vector<operation_total> operations;  ///< of a run without batches
  std::int64_t recorded_ns = 0;             ///< likewise, from the first start to the last end
  std::vector<figures> aggregated;          ///< counted and not recorded: within what is above
  std::vector<slow_sample> slow_samples;    ///< the slowest first
  std::vector<slow_worker> slow_workers;    ///< the slowest first
  record_counts records;

  bool has(std::string_view check_id) const noexcept;
};

/// A run's diagnosis; none where its logs cannot be read, or have nothing in them.
struct judgement {
  std::optional<diagnosis> found;
  std::string why_not;
};

/// Judges one run by replaying it with each of its bounds loosened (gains_of()): the largest gain
/// is the verdict. There is none where the logs lack what it rests on, a check is unsafe, or the
/// replay of the run as it was is more than 25 % off.
///
/// Beside it, with W workers at once (workers_at_once()): preprocessing capacity = W / mean
/// preprocess time, or the least of the stages' where some are named; consumer capacity = 1 / mean
/// step; wait share = sum of waits / (sum of waits + sum of steps); head-of-line share = the part
/// of the waiting during which a later batch of the same epoch lay ready.
/// @param run  read with diagnosis_parts, or more.
judgement diagnose_run(const run_data& run, std::size_t skip_batches, diagnostic_log& diagnostics);
inline constexpr run_parts diagnosis_parts = checked_parts;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_DIAGNOSIS_HPP
