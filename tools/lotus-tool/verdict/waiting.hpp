// What the consumer's waits went to.
#ifndef LOTUS_TOOL_VERDICT_WAITING_HPP
#define LOTUS_TOOL_VERDICT_WAITING_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Sums over the counted batches.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;  ///< a later batch lay ready
  double steps_ns = 0;

  /// Of the consumer's time, 0..1.
  double share() const noexcept;
};

/// @param counted  by place in run_batches::all().
waiting waits_of(const run_batches& batches, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_WAITING_HPP
