// What may have let a span begin.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_LINKS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// Neighbours of those spans of run_batches::making() that lie in no other one of their thread.
class span_links {
 public:
  /// @param batches      must outlive this.
  /// @param with_pieces  spans_with_pieces() of them.
  span_links(const run_batches& batches, const std::vector<bool>& with_pieces);

  /// The one before on the same thread.
  optional_span before(span_number span) const noexcept { return before_[span]; }
  /// Of the same item or batch in the stage before, the last one.
  optional_span earlier(span_number span) const noexcept { return earlier_[span]; }
  /// A span of the next stage that began just before, and so made room.
  optional_span taken_downstream(const making_span& span) const;

  /// Whether the one may have let the other begin: it was at most 20 us and a twentieth of the mean
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
