// Distributes the slices of one thread over tracks (lanes) so that the slices of a lane nest.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace lotus::tool {

/// For slices in order of their starts, finds the first lane on which each slice nests. A call
/// takes O(log n) time on average, even if there are many lanes.
class first_fitting_lane {
 public:
  /// Adds a slice and returns the index of its lane.
  /// @param start_ns  must not be less than in the previous call.
  std::size_t take(std::int64_t start_ns, std::int64_t end_ns) {
    while (!ends_.empty() && ends_.top().first <= start_ns) {
      const std::size_t lane = ends_.top().second;
      ends_.pop();
      // The slices on a lane nest, so the innermost open slice ends first.
      open_ends_ns_[lane].pop_back();
      update(lane);
    }
    if (room_[1] < end_ns) grow();
    std::size_t node = 1;
    while (node < leaves()) {
      node *= 2;
      if (room_[node] < end_ns) ++node;
    }
    const std::size_t lane = node - leaves();
    open_ends_ns_[lane].push_back(end_ns);
    ends_.emplace(end_ns, lane);
    update(lane);
    return lane;
  }

 private:
  std::size_t leaves() const { return open_ends_ns_.size(); }

  /// Doubles the number of lanes.
  void grow() {
    const std::size_t before = leaves();
    open_ends_ns_.resize(before * 2);
    room_.assign(before * 4, INT64_MAX);
    for (std::size_t lane = 0; lane < before; ++lane) update(lane);
  }

  void update(std::size_t lane) {
    const std::vector<std::int64_t>& open = open_ends_ns_[lane];
    std::size_t node = leaves() + lane;
    room_[node] = open.empty() ? INT64_MAX : open.back();
    while (node /= 2) room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }

  using end_of_lane = std::pair<std::int64_t, std::size_t>;

  /// For each lane, the end times of the open slices; the innermost is last.
  std::vector<std::vector<std::int64_t>> open_ends_ns_ = std::vector<std::vector<std::int64_t>>(1);
  /// A binary tree with the root at index 1. Each leaf is a lane: the latest time at which its next
  /// slice may end. Each inner node is the maximum of its children.
  std::vector<std::int64_t> room_ = std::vector<std::int64_t>(2, INT64_MAX);
  std::priority_queue<end_of_lane, std::vector<end_of_lane>, std::greater<>> ends_;
};

/// For spans in any order, finds the first lane whose last span ended before each span starts. A
/// call takes O(log n) time on average, even if there are many lanes.
class first_free_lane {
 public:
  /// Adds a span and returns the index of its lane.
  std::size_t take(std::int64_t start_ns, std::int64_t end_ns) {
    if (first_end_[1] > start_ns) grow();
    std::size_t node = 1;
    while (node < first_end_.size() / 2) {
      node *= 2;
      if (first_end_[node] > start_ns) ++node;
    }
    const std::size_t lane = node - first_end_.size() / 2;
    first_end_[node] = end_ns;
    while (node /= 2) {
      first_end_[node] = std::min(first_end_[2 * node], first_end_[2 * node + 1]);
    }
    return lane;
  }

 private:
  /// Doubles the number of lanes.
  void grow() {
    const std::size_t before = first_end_.size() / 2;
    std::vector<std::int64_t> grown(before * 4, INT64_MIN);
    std::copy(first_end_.end() - static_cast<std::ptrdiff_t>(before), first_end_.end(),
              grown.begin() + static_cast<std::ptrdiff_t>(before * 2));
    first_end_ = std::move(grown);
    for (std::size_t node = before * 2; --node > 0;) {
      first_end_[node] = std::min(first_end_[2 * node], first_end_[2 * node + 1]);
    }
  }

  /// A binary tree with the root at index 1. Each leaf is a lane: the end of its last span. Each
  /// inner node is the minimum of its children.
  std::vector<std::int64_t> first_end_ = std::vector<std::int64_t>(2, INT64_MIN);
};

/// Distributes slices over lanes, each of which is drawn as a track. Viewers draw a track as a
/// stack, so the slices of a lane must nest or be disjoint. Most slices fit on the first lane. A
/// slice that partly overlaps another one is stored for a further lane. A slice that comes out of
/// order is stored too, because it may overlap slices that were already drawn.
/// @tparam Slice  a type with the members start_ns and duration_ns.
template <class Slice>
class nesting_lanes {
 public:
  /// Returns whether a slice fits on the first lane. If not, call keep() for it.
  bool fits(std::int64_t start_ns, std::int64_t duration_ns) {
    if (start_ns < last_ns_) return false;
    const std::int64_t end_ns = start_ns + duration_ns;
    while (!open_ends_ns_.empty() && open_ends_ns_.back() <= start_ns) open_ends_ns_.pop_back();
    if (!open_ends_ns_.empty() && end_ns > open_ends_ns_.back()) return false;
    open_ends_ns_.push_back(end_ns);
    last_ns_ = start_ns;
    return true;
  }

  /// Stores a slice for the further lanes.
  void keep(const Slice& slice) { kept_.push_back(slice); }

  /// Begins the next lane; returns false if there is none. The first call distributes the stored
  /// slices over the further lanes, so no slice may be added after it.
  bool next() {
    if (!distributed_) distribute();
    lane_begin_ = lane_end_;
    if (lane_begin_ == by_lane_.size()) return false;
    const std::size_t lane = by_lane_[lane_begin_].first;
    while (lane_end_ < by_lane_.size() && by_lane_[lane_end_].first == lane) ++lane_end_;
    return true;
  }

  /// Calls `on_slice` in order for each slice on the lane that next() began.
  template <class OnSlice>
  void for_each(OnSlice&& on_slice) const {
    for (std::size_t i = lane_begin_; i < lane_end_; ++i) on_slice(kept_[by_lane_[i].second]);
  }

 private:
  void distribute() {
    std::stable_sort(kept_.begin(), kept_.end(), [](const Slice& a, const Slice& b) {
      return std::tie(a.start_ns, b.duration_ns) < std::tie(b.start_ns, a.duration_ns);
    });
    first_fitting_lane lanes;
    by_lane_.reserve(kept_.size());
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const Slice& slice = kept_[i];
      by_lane_.emplace_back(lanes.take(slice.start_ns, slice.start_ns + slice.duration_ns), i);
    }
    std::sort(by_lane_.begin(), by_lane_.end());
    distributed_ = true;
  }

  std::vector<std::int64_t> open_ends_ns_;  ///< end times of the open slices on the first lane
  std::int64_t last_ns_ = INT64_MIN;        ///< start of the last slice on the first lane
  std::vector<Slice> kept_;
  bool distributed_ = false;
  /// Pairs of a lane and an index in kept_, sorted.
  std::vector<std::pair<std::size_t, std::size_t>> by_lane_;
  std::size_t lane_begin_ = 0;
  std::size_t lane_end_ = 0;
};

/// The open slices of one track. Slices must be added in order of start, the longer first. The
/// functions call `close(end_ns)` once for every slice, in order of time. If a slice ends
/// after its parent, it is closed at the parent's end, because formats with separate begin and end
/// events require that slices nest.
class slice_stack {
 public:
  /// Closes the slices that have ended by `start_ns`, and opens a slice. Returns the slice's start,
  /// which is not before the last event written, because the formats require events in order of
  /// time.
  template <class Close>
  std::int64_t open(std::int64_t start_ns, std::int64_t duration_ns, Close&& close) {
    close_until(start_ns, close);
    const std::int64_t begin = std::max(start_ns, last_ns_);
    std::int64_t end = std::max(begin, start_ns + duration_ns);
    if (!open_ends_ns_.empty()) end = std::min(end, open_ends_ns_.back());
    open_ends_ns_.push_back(end);
    last_ns_ = begin;
    return begin;
  }

  template <class Close>
  void close_until(std::int64_t now_ns, Close&& close) {
    while (!open_ends_ns_.empty() && open_ends_ns_.back() <= now_ns) {
      last_ns_ = std::max(last_ns_, open_ends_ns_.back());
      close(last_ns_);
      open_ends_ns_.pop_back();
    }
  }

  /// Closes all slices, so that the object can be used for the next track.
  template <class Close>
  void finish(Close&& close) {
    close_until(INT64_MAX, close);
    last_ns_ = INT64_MIN;
  }

 private:
  std::vector<std::int64_t> open_ends_ns_;
  std::int64_t last_ns_ = INT64_MIN;  // latest time that was written
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_NESTING_LANES_HPP
