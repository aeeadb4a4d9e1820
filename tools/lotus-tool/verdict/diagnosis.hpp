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
#include "model/run_data.hpp"
#include "model/worker_time.hpp"
#include "verdict/check.hpp"
#include "verdict/slow_workers.hpp"

namespace lotus::tool {

enum class verdict : std::uint8_t {
  consumer_bound,
  preprocessing_bound,
  stage_bound,
  order_bound,
  unsteady
};

/// "consumer-bound" and so on.
std::string_view verdict_name(verdict v) noexcept;

/// Why a run is unsteady: what most of the waiting goes to.
enum class unsteadiness : std::uint8_t { none, start_up, stragglers, variance, consumer };

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
  unsteadiness because = unsteadiness::none;
  std::string stage;  ///< where stage_bound, its name
  std::size_t batches = 0;
  std::size_t workers = 0;  ///< at once
  double wait_ns = 0;       ///< sum over all batches
  double step_ns = 0;       ///< sum
  double mean_preprocess_ns = 0;
  double std_preprocess_ns = 0;
  double wait_share = 0;                         ///< of the consumer's time, 0..1
  double head_of_line_share = 0;                 ///< of the waiting, 0..1
  std::optional<double> achieved;                ///< batches per second
  std::optional<double> preprocessing_capacity;  ///< batches per second, of the slowest stage
  std::optional<double> consumer_capacity;       ///< batches per second
  std::optional<rate_interval> preprocessing_interval;  ///< where there are few batches
  std::optional<rate_interval> consumer_interval;
  double samples_per_batch = 0;           ///< 0 when unknown
  std::vector<op_share> ops;              ///< the largest share first
  std::vector<slow_sample> slow_samples;  ///< the slowest first
  std::vector<slow_worker> slow_workers;  ///< the slowest first
  record_counts records;

  bool has(std::string_view check_id) const noexcept;
};

/// A run's diagnosis, or why there is none.
struct judgement {
  std::optional<diagnosis> found;
  std::string why_not;  ///< what the logs lack, and what to do about it
};

/// Judges one run; there is no verdict where the logs lack what it rests on, or a check is unsafe.
///
/// With W workers at once (workers_at_once()): preprocessing capacity = W / mean preprocess time,
/// or the least of the stages' where some are named; consumer capacity = 1 / mean step; wait share
/// = sum of waits / (sum of waits + sum of steps); head-of-line share = the part of the waiting
/// during which a later batch of the same epoch lay ready. consumer-bound: wait share < 5 %; else
/// unsteady, by start-up: the same behind the first W batches of the epochs; else
/// preprocessing-bound (stage-bound where that stage is a named one): preprocessing capacity <
/// consumer capacity; else order-bound: head-of-line share >= 50 %, and neither that time nor the
/// distance to the lesser capacity below 5 %; else unsteady.
///
/// No operation is said to make a run faster than the consumer and the other stages could take it,
/// and none at all where threads waited for CPUs.
/// @param run  read with diagnosis_parts, or more.
judgement diagnose_run(const run_data& run, std::size_t skip_batches, diagnostic_log& diagnostics);
inline constexpr run_parts diagnosis_parts = checked_parts;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_DIAGNOSIS_HPP
