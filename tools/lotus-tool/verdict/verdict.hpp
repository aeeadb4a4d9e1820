// What a run can be bound by.
#ifndef LOTUS_TOOL_VERDICT_VERDICT_HPP
#define LOTUS_TOOL_VERDICT_VERDICT_HPP

#include <cstdint>
#include <string_view>

namespace lotus::tool {

enum class verdict : std::uint8_t {
  order_bound,          ///< batches wait for others that come before them
  prefetch_bound,       ///< too little is out at once
  start_up_bound,       ///< until threads are there, and their first batches
  preprocessing_bound,  ///< the making of batches
  stage_bound,          ///< one stage of it
  consumer_bound,       ///< the consumer's steps
  balanced              ///< no single change gains 5 %
};

/// "consumer-bound" and so on.
std::string_view verdict_name(verdict v) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_VERDICT_HPP
