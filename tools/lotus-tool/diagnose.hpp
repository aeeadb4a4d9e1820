// lotus-tool diagnose: what a run waits for.
#ifndef LOTUS_TOOL_DIAGNOSE_HPP
#define LOTUS_TOOL_DIAGNOSE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"

namespace lotus::tool {

struct diagnose_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::size_t skip_batches = 0;  ///< at the beginning of every epoch
  bool json = false;
  bool strict = false;
  bool quiet = false;
};

enum class verdict : std::uint8_t { consumer_bound, preprocessing_bound, order_bound, unsteady };

/// "consumer-bound" and so on.
std::string_view verdict_name(verdict v) noexcept;

/// Why a run is unsteady: what most of the waiting goes to.
enum class unsteadiness : std::uint8_t { none, start_up, stragglers, variance };

struct op_share {
  std::string name;
  double share = 0;  ///< of the workers' time, 0..1
  /// Speed-up of the workers if this operation cost nothing: Amdahl's 1 / (1 - share). Missing
  /// when the operation is everything.
  std::optional<double> at_most_faster;
};

/// An operation that took long, and where.
struct slow_sample {
  std::string name;
  std::int64_t duration_ns = 0;
  double median_ns = 0;  ///< of the operation
  std::int64_t batch = 0;
  std::uint32_t epoch = 0;
  std::uint64_t worker = 0;
};

struct slow_worker {
  std::uint64_t worker = 0;
  double mean_ns = 0;      ///< of its batches
  double slower_than = 0;  ///< its mean over the median of all workers' means
};

struct diagnosis {
  std::string dir;
  verdict is = verdict::unsteady;
  unsteadiness because = unsteadiness::none;
  std::size_t batches = 0;
  std::size_t workers = 0;  ///< at once
  double wait_ns = 0;       ///< sum over all batches
  double step_ns = 0;       ///< sum
  double mean_preprocess_ns = 0;
  double std_preprocess_ns = 0;
  double wait_share = 0;                         ///< of the consumer's time, 0..1
  double head_of_line_share = 0;                 ///< of the waiting, 0..1
  std::optional<double> preprocessing_capacity;  ///< batches per second
  std::optional<double> consumer_capacity;       ///< batches per second
  double samples_per_batch = 0;                  ///< 0 when unknown
  std::vector<op_share> ops;                     ///< the largest share first
  std::vector<slow_sample> slow_samples;         ///< the slowest first
  std::vector<slow_worker> slow_workers;         ///< the slowest first
};

/// Judges one run. Throws input_error when the logs lack what the verdict rests on.
///
/// With W workers at once (the most that preprocessed in one epoch): preprocessing capacity =
/// W / mean preprocess time; consumer capacity = 1 / mean step; wait share = sum of waits /
/// (sum of waits + sum of steps); head-of-line share = the part of the waiting during which a
/// later batch of the same epoch lay ready. consumer-bound: wait share < 5 %; else
/// preprocessing-bound: preprocessing capacity < consumer capacity; else order-bound:
/// head-of-line share >= 50 %; else unsteady.
diagnosis diagnose_run(const run_files& run, std::size_t skip_batches, diagnostics& said);

/// Prints the verdict of every run in options.dir. Returns the exit status; throws input_error.
int run_diagnose(const diagnose_options& options, std::ostream& out, std::ostream& err);

/// The verdict in one sentence.
std::string verdict_sentence(const diagnosis& d);
void print_diagnosis(const diagnosis& d, std::ostream& out);
std::string diagnosis_json(const diagnosis& d);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DIAGNOSE_HPP
