// Distributes the slices of one thread over tracks on which they nest.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Viewers draw a track as a stack, so slices of one track must nest or be disjoint. A slice that
/// overlaps another one partly is kept for a further lane. So is a slice that comes out of order,
/// because it may overlap slices that were already drawn.
/// @tparam Slice  has start_ns and duration_ns.
template <class Slice>
class nesting_lanes {
 public:
  /// Returns whether the slice fits on the current lane; if not, keeps it for the next one.
  bool take(const Slice& slice) {
    const std::int64_t end_ns = slice.start_ns + slice.duration_ns;
    bool fits = slice.start_ns >= last_ns_;
    if (fits) {
      while (!open_ends_ns_.empty() && open_ends_ns_.back() <= slice.start_ns) {
        open_ends_ns_.pop_back();
      }
      fits = open_ends_ns_.empty() || end_ns <= open_ends_ns_.back();
    }
    if (!fits) {
      kept_.push_back(slice);
      return false;
    }
    open_ends_ns_.push_back(end_ns);
    last_ns_ = slice.start_ns;
    return true;
  }

  /// Keeps the slice for the next lane.
  void keep(const Slice& slice) { kept_.push_back(slice); }

  /// Starts the next lane with the slices that were kept. Returns false if there were none.
  template <class Before>
  bool next(Before&& before) {
    std::vector<Slice> waiting = std::move(kept_);
    kept_.clear();
    lane_.clear();
    open_ends_ns_.clear();
    last_ns_ = INT64_MIN;
    std::stable_sort(waiting.begin(), waiting.end(), before);
    for (const Slice& slice : waiting) {
      if (take(slice)) lane_.push_back(slice);
    }
    return !lane_.empty();
  }

  /// Calls `on_slice` for the slices of the lane that next() started, in order.
  template <class OnSlice>
  void for_each(OnSlice&& on_slice) const {
    for (const Slice& slice : lane_) on_slice(slice);
  }

 private:
  std::vector<std::int64_t> open_ends_ns_;
  std::int64_t last_ns_ = INT64_MIN;
  std::vector<Slice> kept_;
  std::vector<Slice> lane_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP
