// Finds the spans in which a thread gives parts of a batch to other threads and waits for them.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_FORKED_SPANS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_FORKED_SPANS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Fork and join inside a batch: while a thread builds a batch, stages work on the same batch in
/// other threads, and end before the thread's own span does. Stages that follow each other never
/// overlap, so such spans are parts of the work of the thread that waits for them.
class forked_spans {
 public:
  /// @param is_segmented  the result of segmented_spans(run.batches). `run` must outlive this
  ///   object.
  forked_spans(const run_data& run, const std::vector<bool>& is_segmented);

  /// Returns whether a span is a part of the work of a thread that waits for it.
  bool is_forked(span_number n) const noexcept { return is_forked_[n]; }
  /// Returns the spans of other threads for which the thread of this span waits, sorted by start.
  const std::vector<span_number>& of(span_number n) const;
  /// Returns how long the thread of this span was blocked while those spans ran.
  std::int64_t waited_ns(span_number n) const;
  /// Returns whether any span has forked ones.
  bool any() const noexcept { return !of_.empty(); }

 private:
  const run_data& run_;
  std::vector<bool> is_forked_;
  std::map<span_number, std::vector<span_number>> of_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_FORKED_SPANS_HPP
