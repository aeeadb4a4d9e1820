// What the consumer's waits went to.
#ifndef LOTUS_TOOL_VERDICT_WAITING_HPP
#define LOTUS_TOOL_VERDICT_WAITING_HPP

#include <cstddef>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Sums over the counted batches.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;   ///< a later batch lay ready
  double at_start_ns = 0;        ///< for the first batches of an epoch, one for each worker
  double for_stragglers_ns = 0;  ///< for batches that took over twice the median
  double steps_ns = 0;
  double steps_at_start_ns = 0;  ///< of the same batches as at_start_ns

  /// Of the consumer's time, 0..1.
  double share() const noexcept;
  /// The same behind the first batches.
  double share_behind_start() const noexcept;
};

/// @param counted    by place in run_batches::all().
/// @param median_ns  of the preprocess times.
waiting waits_of(const run_batches& batches, const std::vector<bool>& counted, std::size_t workers,
                 double median_ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_WAITING_HPP
