// Sums up the time that the consumer waited for batches.
#ifndef LOTUS_TOOL_VERDICT_WAITING_HPP
#define LOTUS_TOOL_VERDICT_WAITING_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Sums of the consumer's waits for the counted batches.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;  ///< part of all_ns while a later batch was ready
  double steps_ns = 0;

  /// Returns the share of the consumer's time that it waited, 0..1.
  double share() const noexcept;
};

/// @param counted  by index in run_batches::all(): whether the batch is included in the sums.
waiting waits_of(const run_batches& batches, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_WAITING_HPP
