#include "verdict/verdict.hpp"

#include <string_view>

namespace lotus::tool {

std::string_view verdict_name(verdict v) noexcept {
  switch (v) {
    case verdict::consumer_bound:
      return "consumer-bound";
    case verdict::preprocessing_bound:
      return "preprocessing-bound";
    case verdict::stage_bound:
      return "stage-bound";
    case verdict::lock_bound:
      return "lock-bound";
    case verdict::order_bound:
      return "order-bound";
    case verdict::prefetch_bound:
      return "prefetch-bound";
    case verdict::start_up_bound:
      return "start-up-bound";
    case verdict::balanced:
      break;
  }
  return "balanced";
}

}  // namespace lotus::tool
