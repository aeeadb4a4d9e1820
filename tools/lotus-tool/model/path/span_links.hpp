// Finds the spans that may have allowed a span to begin.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Neighbors of the spans of run_batches::making() that are not nested in another span of their
/// thread.
class span_links {
 public:
  /// @param batches      must outlive this.
  /// @param with_pieces  the result of spans_with_pieces(batches).
  span_links(const run_batches& batches, const std::vector<bool>& with_pieces);

  /// The span before on the same thread.
  optional_span before(span_number span) const noexcept { return before_[span]; }
  /// The last span of the same item or batch in the stage before.
  optional_span earlier(span_number span) const noexcept { return earlier_[span]; }
  /// A span of the next stage that began just before, and so made room.
  optional_span taken_downstream(const making_span& span) const;

  /// Whether one event may have caused the other: it was at most 20 us and a twentieth of the mean
  /// span before.
  bool just_before(std::int64_t earlier_ns, std::int64_t now_ns) const noexcept {
    return earlier_ns <= now_ns && now_ns - earlier_ns <= tolerance_ns_;
  }

 private:
  const std::vector<making_span>& spans_;
  std::vector<optional_span> before_;
  std::vector<optional_span> earlier_;
  std::map<stage_id, std::vector<span_number>> starts_;  // in order of start
  std::map<stage_id, stage_id> next_stage_;
  std::int64_t tolerance_ns_ = 20'000;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP
