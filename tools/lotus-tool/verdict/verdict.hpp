// Defines the possible verdicts on a run.
#ifndef LOTUS_TOOL_VERDICT_VERDICT_HPP
#define LOTUS_TOOL_VERDICT_VERDICT_HPP

#include <cstdint>
#include <string_view>

namespace lotus::tool {

enum class verdict : std::uint8_t {
  /// Finished batches wait for an earlier batch, because batches are received in order.
  order_bound,
  prefetch_bound,       ///< too few batches are in flight
  start_up_bound,       ///< starting the threads and building their first batches takes long
  preprocessing_bound,  ///< building batches is the bottleneck
  stage_bound,          ///< one stage of preprocessing is the bottleneck
  lock_bound,           ///< one lock that preprocessing waits for is the bottleneck
  consumer_bound,       ///< the consumer's steps are the bottleneck
  balanced              ///< relaxing any single limit makes the run less than 5 % faster
};

/// Returns the name of a verdict, such as "consumer-bound".
std::string_view verdict_name(verdict v) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_VERDICT_HPP
