// Finds the spans whose start or end may have allowed another span to begin.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Relations between the spans of run_batches::preprocessing_spans(). Spans that are nested in
/// another span of the same thread are left out.
class span_links {
 public:
  /// @param batches      must outlive this object.
  /// @param is_segmented  the result of segmented_spans(batches).
  span_links(const run_batches& batches, const std::vector<bool>& is_segmented);

  /// Returns the previous span of the same thread; nullopt for the thread's first span.
  optional_span before(span_number span) const noexcept { return before_[span]; }
  /// Returns the span of the same item or batch that came directly before `span`, usually in the
  /// previous stage; of several such spans, the one that ended last. nullopt if there is none.
  optional_span earlier(span_number span) const noexcept { return earlier_[span]; }
  /// Returns a span of the next stage that began just before `span`; nullopt if there is none. When
  /// it began, it took an item out of the queue between the two stages. If this queue was full,
  /// this allowed `span` to begin.
  optional_span fetching_span(const preprocessing_span& span) const;

  /// Returns whether an earlier event may be the cause of a later one: the time between them is at
  /// most 20 us plus 5 % of the mean span duration.
  bool just_before(std::int64_t earlier_ns, std::int64_t now_ns) const noexcept {
    return earlier_ns <= now_ns && now_ns - earlier_ns <= tolerance_ns_;
  }

 private:
  const std::vector<preprocessing_span>& spans_;
  std::vector<optional_span> before_;
  std::vector<optional_span> earlier_;
  std::map<stage_id, std::vector<span_number>> starts_;  // spans of each stage, sorted by start
  std::map<stage_id, stage_id> next_stage_;
  std::int64_t tolerance_ns_ = 20'000;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP
