// Divides the consumer's waits by what was missing, and by what its own thread did meanwhile.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_WAIT_PARTS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_WAIT_PARTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "findings/facts/wait_patterns.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A consumer that waits for less than this share of its time does not wait much. In simulated
/// loaders, balanced and consumer-bound runs have at most 0.08.
inline constexpr double waits_much = 0.15;

/// Sums over the consumer's waits, in ns. All times up to hand_over_ns that are not parts of others
/// add up to all_ns.
struct wait_parts {
  double first_ns = 0;          ///< until the first batch of an epoch was ready
  double longest_first_ns = 0;  ///< the longest part of first_ns that one epoch has
  double not_begun_ns = 0;      ///< no thread had begun to build the batch
  double built_ns = 0;          ///< the batch was being built
  double between_ns = 0;        ///< the batch was between two stages
  double order_ns = 0;          ///< the batch was not ready, but a later one was
  double order_between_ns = 0;  ///< the part of order_ns in which it was between two stages
  double hand_over_ns = 0;      ///< the batch was ready, but the consumer did not have it yet
  double all_ns = 0;
  double steps_ns = 0;          ///< time of the consumer's steps
  double behind_others_ns = 0;  ///< part of all_ns during which a later batch was ready
  double nobody_ns = 0;  ///< part of all_ns in which no batch was being built and none was ready

  /// What the consumer's own thread did during hand_over_ns; the three add up to it if own_known.
  double own_cpu_ns = 0;      ///< it was on a CPU
  double own_queue_ns = 0;    ///< it waited for a CPU
  double own_blocked_ns = 0;  ///< it was blocked or asleep
  bool own_known = true;

  std::size_t waits = 0;         ///< number of waits
  std::size_t epochs = 0;        ///< number of epochs with waits
  std::size_t ready_before = 0;  ///< waits for batches that were ready before the wait began
  double mean_ready_for_ns = 0;  ///< mean time from ready to received, of these batches
  wait_patterns patterns;
  std::vector<time_span> first_spans;  ///< the times that first_ns sums up
  /// The stage before which batches were longest during order_between_ns; nullopt if it is 0.
  std::optional<stage_id> order_stage{};

  /// Returns the share (0..1) of the consumer's time during which it waited.
  double share() const noexcept { return all_ns > 0 ? all_ns / (all_ns + steps_ns) : 0; }

  /// Whether most of the time in which nobody built a batch was between two stages.
  bool is_between() const noexcept { return between_ns > not_begun_ns; }

  /// Returns how long the consumer waited for batches that were not begun, or between two stages,
  /// while no other batch was being built either.
  double idle_ns() const noexcept { return std::min(not_begun_ns + between_ns, nobody_ns); }
};

/// @param counted  for each index in run_batches::all(): whether to include the batch.
wait_parts divide_waits(const run_data& run, const std::vector<bool>& counted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_WAIT_PARTS_HPP
