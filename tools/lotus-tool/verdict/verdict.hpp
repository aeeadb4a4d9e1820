// The possible verdicts on a run.
#ifndef LOTUS_TOOL_VERDICT_VERDICT_HPP
#define LOTUS_TOOL_VERDICT_VERDICT_HPP

#include <cstdint>
#include <string_view>

namespace lotus::tool {

enum class verdict : std::uint8_t {
  order_bound,          ///< finished batches wait for earlier ones
  prefetch_bound,       ///< too few batches are in flight
  start_up_bound,       ///< starting the threads and building their first batches
  preprocessing_bound,  ///< building batches
  stage_bound,          ///< one stage of preprocessing
  consumer_bound,       ///< the consumer's steps
  balanced              ///< no single change gains 5 %
};

/// "consumer-bound" and so on.
std::string_view verdict_name(verdict v) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_VERDICT_HPP
