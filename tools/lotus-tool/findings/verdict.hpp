// The list of all verdicts: what a run can be limited by. Every output reads this list.
#ifndef LOTUS_TOOL_FINDINGS_VERDICT_HPP
#define LOTUS_TOOL_FINDINGS_VERDICT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lotus::tool {

enum class verdict : std::uint8_t {
  consumer_bound,
  preprocessing_bound,
  stage_bound,
  lock_bound,
  order_bound,
  prefetch_bound,
  hand_over_bound,
  start_up_bound,
  balanced
};

/// What outputs say about a verdict. Texts are without a final period.
struct verdict_row {
  verdict is;
  std::string_view key;      ///< name in all outputs and for --fail-if, such as "lock-bound"
  std::string_view kind;     ///< value of "bound_by"."kind" in JSON; "" if nothing limits the run
  std::string_view title;    ///< beginning of the first sentence; % stands for the stage's name
  std::string_view meaning;  ///< what limits the run, for help texts
  /// Whether --fail-if preprocessing-bound includes this verdict.
  bool of_preprocessing;
};

inline constexpr std::array all_verdicts{
    verdict_row{verdict::consumer_bound, "consumer-bound", "consumer",
                "The consumer is the bottleneck",
                "the consumer's work on batches, such as training", false},
    verdict_row{verdict::preprocessing_bound, "preprocessing-bound", "operation",
                "Preprocessing is the bottleneck",
                "the work of the workers, which build the batches", true},
    verdict_row{verdict::stage_bound, "stage-bound", "stage", "Stage % is the bottleneck",
                "one stage (LOTUS_STAGE), a part of the pipeline", true},
    verdict_row{verdict::lock_bound, "lock-bound", "lock", "A lock is the bottleneck",
                "one lock, for which preprocessing mostly waits", true},
    verdict_row{verdict::order_bound, "order-bound", "order",
                "The order of the batches is the bottleneck",
                "the rule that batches are received in order", false},
    verdict_row{verdict::prefetch_bound, "prefetch-bound", "prefetch",
                "The prefetch depth is the bottleneck",
                "the limit of batches that workers may prepare in advance", false},
    verdict_row{verdict::hand_over_bound, "hand-over-bound", "hand-over",
                "Batches are handed over too late", "the way of finished batches to the consumer",
                false},
    verdict_row{verdict::start_up_bound, "start-up-bound", "start-up",
                "The start-up is the bottleneck", "the time until the workers are ready", false},
    verdict_row{verdict::balanced, "balanced", "", "Nothing is the bottleneck",
                "no bottleneck: no change (see below) gains 5 % or more", false},
};

/// Whether the list has one row for each verdict, in the order of the verdicts.
constexpr bool has_all_verdicts() noexcept {
  for (std::size_t i = 0; i < all_verdicts.size(); ++i) {
    if (static_cast<std::size_t>(all_verdicts[i].is) != i) return false;
  }
  return all_verdicts.size() == static_cast<std::size_t>(verdict::balanced) + 1;
}
static_assert(has_all_verdicts());

constexpr const verdict_row& row_of(verdict v) noexcept {
  return all_verdicts[static_cast<std::size_t>(v)];
}

/// Returns the name of a verdict, such as "consumer-bound".
constexpr std::string_view verdict_name(verdict v) noexcept {
  return row_of(v).key;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_VERDICT_HPP
