// Finds operations whose times change during the run: from some batch on, slowly, or now and then;
// and workers that need more time for a batch than the others.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_CHANGES_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_CHANGES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct time_span;

/// How a series of times changes.
struct time_change {
  enum class shape : std::uint8_t {
    step,      ///< from element `at` on, times are `after_ns` instead of `before_ns`
    trend,     ///< times grow or shrink from `before_ns` to `after_ns`
    now_again  ///< `rare` elements take `after_ns`, the others `before_ns`; every `every`-th if set
  };
  shape is = shape::step;
  std::string of;  ///< name of the operation, without S; "" for the consumer's steps
  /// Whether this is the time of batches outside of all operations; `of` is then "".
  bool is_outside = false;
  std::size_t at = 0;
  double before_ns = 0;
  double after_ns = 0;
  std::size_t rare = 0;
  std::size_t every = 0;    ///< 0: at irregular distances
  double rare_share = 0;    ///< share (0..1) of the series' time in the rare elements
  double rare_mean_ns = 0;  ///< mean time of the rare elements
  /// Whether the operation's calls take as long as before, so that their number changes.
  bool by_calls = false;
};

/// Returns the value below which the share `q` (0..1) of the values lies.
/// @param values  not empty.
double quantile(std::vector<double> values, double q);

/// Returns the change of a series of times; nullopt if its times do not change by a factor of two.
/// @param times_ns  in order of time, without waits for a CPU, which other programs may cause.
std::optional<time_change> find_change(const std::vector<double>& times_ns);

/// Returns whether single calls of an operation change much less than its time in a batch.
/// @param calls  of the operation, in any order.
/// @param change  of its time in the batches, which lasts.
bool has_equal_calls(std::vector<time_span> calls, const time_change& change);

struct slow_worker {
  std::uint64_t worker = 0;
  std::string stage{};  ///< the stage in which it is slow; "": preprocessing of whole batches
  double mean_ns = 0;   ///< mean time of its batches
  /// By which factor its batches took longer than those that others built at the same time.
  double slower_than = 0;
};

/// Returns the slow workers, slowest first. A worker is slow if its mean preprocess time, or that
/// in one stage, is more than 1.25 times the median of all workers' means, and exceeds the median
/// by more than three standard errors. Without the second condition, chance alone could make a
/// worker look slow; and if the upper quartile of its times is at most 1.1 times as long as those
/// of the others, it only happened to get some slow batches. Workers are compared only while
/// several work, and without changes over the run.
std::vector<slow_worker> slow_workers_of(const run_data& run, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_CHANGES_HPP
