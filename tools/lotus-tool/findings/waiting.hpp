// Sums up the time that the consumer waited for batches.
#ifndef LOTUS_TOOL_FINDINGS_WAITING_HPP
#define LOTUS_TOOL_FINDINGS_WAITING_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Sums of the consumer's waits and steps.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;  ///< part of all_ns during which a later batch was ready
  double steps_ns = 0;

  /// Returns the share (0..1) of the consumer's time during which it waited for batches.
  double share() const noexcept;
};

/// Sums up the waits.
/// @param counted  for each index in run_batches::all(): whether to include the batch in the sums.
waiting waits_of(const run_batches& batches, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_WAITING_HPP
