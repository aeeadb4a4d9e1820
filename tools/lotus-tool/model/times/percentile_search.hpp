// Finds exact percentiles of durations that are not all in memory.
#ifndef LOTUS_TOOL_MODEL_TIMES_PERCENTILE_SEARCH_HPP
#define LOTUS_TOOL_MODEL_TIMES_PERCENTILE_SEARCH_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/statistics/distribution.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Finds the values at certain ranks, such as the median. The durations are already counted in
/// buckets. The caller passes all durations to look() again, usually once or twice. Each time, the
/// search splits the ranges that contain the ranks into narrower ones and counts the durations in
/// them, until each range contains only one value.
class percentile_search {
 public:
  /// @param counted  the durations, which must be in buckets (are_all() is false).
  /// @param shares  the percentiles to find, as shares 0..1.
  percentile_search(const kept_durations& counted, const std::vector<double>& shares);

  bool is_done() const noexcept { return ranges_.empty(); }
  /// Counts one duration. Thread-safe.
  void look(std::int64_t ns) noexcept {
    for (const range& r : ranges_) {
      if (ns < r.lowest) return;  // ranges_ is sorted, so no later range contains `ns`
      const auto off = static_cast<std::uint64_t>(ns - r.lowest);
      if (off >> r.width_bits != 0) continue;
      r.counts[off >> r.part_bits].fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  /// Ends one pass over the durations: narrows the ranges that contain the ranks. Call this after
  /// look() was called for all durations.
  void next();

  /// Returns the percentile, as defined by describe(), for a share that was given to the
  /// constructor. Call it only when is_done() returns true.
  double at(double share) const;

 private:
  struct range {
    std::int64_t lowest;
    std::uint64_t before;  // number of values below `lowest`
    unsigned width_bits;
    unsigned part_bits;
    std::unique_ptr<std::atomic<std::uint64_t>[]> counts;  // NOLINT(modernize-avoid-c-arrays)
  };
  struct sought_rank {
    std::uint64_t rank;
    // Lowest value of the range that contains the rank, or its only value if width_bits is 0.
    std::int64_t lowest;
    std::uint64_t before;
    unsigned width_bits;
  };

  void look_for(std::uint64_t rank, const kept_durations& counted);
  void make_ranges();

  std::uint64_t count_;
  std::vector<sought_rank> ranks_;  // ranks to find, sorted
  std::vector<range> ranges_;
};

/// Completes several searches: calls `look_at_all(on_duration)` until all of them are done.
/// `look_at_all` must call `on_duration(search, ns)` for each duration of each search, in any
/// order, from any thread; the argument `search` is the index of the search.
template <class LookAtAll>
void finish(std::vector<percentile_search>& searches, LookAtAll&& look_at_all) {
  const auto left = [&searches] {
    return std::any_of(searches.begin(), searches.end(),
                       [](const percentile_search& s) { return !s.is_done(); });
  };
  while (left()) {
    look_at_all([&searches](std::size_t which, std::int64_t ns) { searches[which].look(ns); });
    for (percentile_search& s : searches) s.next();
  }
}

/// Returns the percentiles that a distribution contains, such as the median, as shares 0..1.
const std::vector<double>& described_shares();
/// Describes durations that are not all in memory. `search` is a completed search for
/// described_shares().
distribution describe(const kept_durations& counted, const percentile_search& search);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TIMES_PERCENTILE_SEARCH_HPP
