// Finds the spans in which a thread waits for other threads: for parts of a batch that it gave to
// them, or for the items of the batch.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_AWAITED_SPANS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_AWAITED_SPANS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Fork and join inside a batch: while a thread builds a batch, stages work on the same batch in
/// other threads, and end before the thread's own span does. Stages that follow each other never
/// overlap, so such spans are parts of the work of the thread that waits for them.
class awaited_spans {
 public:
  /// @param is_segmented  the result of segmented_spans(run.batches). `run` must outlive this
  ///   object.
  awaited_spans(const run_data& run, const std::vector<bool>& is_segmented);

  /// Returns whether a span is a part of the work of a thread that waits for it.
  bool is_forked(span_number n) const noexcept { return is_forked_[n]; }
  /// Returns the spans of other threads for which the thread of this span waits, sorted by start.
  const std::vector<span_number>& of(span_number n) const;
  /// Returns the item of this span's batch that ended last, if it ended within the span, and if the
  /// thread mostly waited until then: as in a stage that puts items together as they come.
  optional_span last_item(span_number n) const;
  /// Returns how long the thread of this span was blocked while those spans ran, or until that item
  /// ended.
  std::int64_t waited_ns(span_number n) const;
  /// Returns whether any span has forked ones.
  bool any() const noexcept { return !of_.empty(); }

 private:
  void find_items();
  /// Returns how long the thread of a span was blocked during a part of the span; if that is
  /// unknown, the length of this part.
  std::int64_t blocked_ns(span_number n, std::int64_t from_ns, std::int64_t until_ns) const;

  const run_data& run_;
  std::vector<bool> is_forked_;
  std::map<span_number, std::vector<span_number>> of_;
  std::map<span_number, span_number> last_items_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_AWAITED_SPANS_HPP
