// Splits the spans in which batches were preprocessed into segments, one for each operation.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Relations between the spans of run_batches::preprocessing_spans(). Spans that are nested in
/// another span of the same thread are left out.
class span_links {
 public:
  /// @param batches      must outlive this object.
  /// @param is_segmented  the result of segmented_spans(batches).
  span_links(const run_batches& batches, const std::vector<bool>& is_segmented);

  /// Returns the previous span of the same thread; for the thread's first span, a span of the same
  /// stage that ended just before it. nullopt if there is none.
  optional_span before(span_number span) const noexcept { return before_[span]; }
  /// Returns the span of the same item or batch that came directly before `span`, usually in the
  /// previous stage; of several such spans, the one that ended last. nullopt if there is none.
  optional_span earlier(span_number span) const noexcept { return earlier_[span]; }
  /// Returns a span of the next stage that began just before `span`; nullopt if there is none. When
  /// it began, it took an item out of the queue between the two stages. If this queue was full,
  /// this allowed `span` to begin.
  optional_span fetching_span(const preprocessing_span& span) const;
  /// Returns the span of the next stage that began just after `span`, if it took an item out of the
  /// queue that was in it before the item of the thread's previous span; nullopt if there is none.
  /// Like fetching_span(), but the thread that waited for room in the queue was the first to begin.
  optional_span taking_span(span_number span) const;
  /// Returns a span of the next stage that ended just before `span` began; nullopt if there is
  /// none. If the number of items that this stage has not yet completed is limited, this allowed
  /// `span` to begin.
  optional_span freeing_span(const preprocessing_span& span) const;
  /// Returns a span of the stage from which `span` got its item that ended just before `span`
  /// began, or in the last tenth of the time in which its thread waited although the item was
  /// ready; nullopt if there is none. If the item itself was ready long before, it was handed over
  /// only when this span ended, alone or with others.
  optional_span handing_span(span_number span) const;

  /// Returns whether an earlier event may be the cause of a later one: the time between them is at
  /// most 20 us plus 5 % of the mean span duration.
  bool just_before(std::int64_t earlier_ns, std::int64_t now_ns) const noexcept {
    return earlier_ns <= now_ns && now_ns - earlier_ns <= tolerance_ns_;
  }

 private:
  /// Returns the span of `stage` that ended last before `time_ns`; nullopt if it ended earlier than
  /// both `tolerance_ns` and just_before() allow.
  optional_span ended_just_before(stage_id stage, std::int64_t time_ns,
                                  std::int64_t tolerance_ns = 0) const;

  const std::vector<preprocessing_span>& spans_;
  std::vector<optional_span> before_;
  std::vector<optional_span> earlier_;
  std::map<stage_id, std::vector<span_number>> starts_;  // spans of each stage, sorted by start
  std::map<stage_id, std::vector<span_number>> ends_;    // spans of each stage, sorted by end
  std::map<stage_id, stage_id> next_stage_;
  std::int64_t tolerance_ns_ = 20'000;
};

/// A part of a span during which the thread's innermost operation did not change: no operation
/// began or ended in it.
struct span_segment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Index in run_data::names of the innermost operation; nullopt outside operations.
  std::optional<std::uint32_t> name;

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// Returns, for each span of run_batches::preprocessing_spans(), whether it is split into segments.
/// This is true if it has a duration and is not nested in another span of its thread. Nested spans
/// are not split, because they are segments of the span that contains them.
std::vector<bool> segmented_spans(const run_batches& batches);

/// Calls `on_segments(span, segments)` for each wanted span that is split; the segments cover the
/// span from start to end. The spans of a log come in the order of their starts. Several logs are
/// read at the same time, so `on_segments` is called by several threads. Only the operations of a
/// few spans of each of these logs are in memory at a time.
/// @param run  a run that was read with run_parts::operations.
/// @param wanted  for each span of run_batches::preprocessing_spans(): whether it is wanted.
void for_each_span(
    const run_data& run, const std::vector<bool>& wanted,
    const std::function<void(span_number, const std::vector<span_segment>&)>& on_segments);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_SEGMENTS_HPP
