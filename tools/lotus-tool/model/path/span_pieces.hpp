// What the spans that made batches consist of, by operations.
#ifndef LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP
#define LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// A stretch of one thread.
struct span_piece {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t name =
      UINT32_MAX;  ///< of run_data::names: the innermost operation; UINT32_MAX: none

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// The pieces of each span of run_batches::making() that lies in no other one of its thread:
/// without a gap from its start to its end. Those that lie in another have none: they are pieces of
/// it.
class span_pieces {
 public:
  struct range {
    const span_piece* first = nullptr;
    const span_piece* last = nullptr;
    const span_piece* begin() const noexcept { return first; }
    const span_piece* end() const noexcept { return last; }
    bool empty() const noexcept { return first == last; }
  };

  /// @param run  read with run_parts::operations.
  explicit span_pieces(const run_data& run);

  /// @param span  place in run_batches::making().
  range of(std::size_t span) const noexcept {
    return {pieces_.data() + places_[span].first, pieces_.data() + places_[span].last};
  }

 private:
  struct place {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  std::vector<span_piece> pieces_;
  std::vector<place> places_;  // by span
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_SPAN_PIECES_HPP
