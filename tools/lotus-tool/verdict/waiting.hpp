// Sums up what the consumer waited for.
#ifndef LOTUS_TOOL_VERDICT_WAITING_HPP
#define LOTUS_TOOL_VERDICT_WAITING_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Sums over the counted batches.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;  ///< the part of all_ns during which a later batch was ready
  double steps_ns = 0;

  /// The waits' share of the consumer's time, 0..1.
  double share() const noexcept;
};

/// @param counted  by index in run_batches::all().
waiting waits_of(const run_batches& batches, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_WAITING_HPP
