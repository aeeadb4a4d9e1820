// Exact percentiles of durations that are not all in memory.
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

/// Which values stand at some places in the order of size. Buckets were counted; those that hold
/// the places are counted anew in narrower ones each time that all durations are looked at, until
/// one is one value: mostly once or twice.
class percentile_search {
 public:
  /// @param counted  are_all() is false. @param shares  0..1
  percentile_search(const kept_durations& counted, const std::vector<double>& shares);

  bool is_done() const noexcept { return ranges_.empty(); }
  /// One of the durations. Thread-safe.
  void look(std::int64_t ns) noexcept {
    for (const range& r : ranges_) {
      if (ns < r.lowest) return;  // they are in order
      const auto off = static_cast<std::uint64_t>(ns - r.lowest);
      if (off >> r.width_bits != 0) continue;
      r.counts[off >> r.part_bits].fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  /// All were looked at.
  void next();

  /// As describe() tells it, for a share that was given. @param is_done()
  double at(double share) const;

 private:
  struct range {
    std::int64_t lowest;
    std::uint64_t before;  // values below it
    unsigned width_bits;
    unsigned part_bits;
    std::unique_ptr<std::atomic<std::uint64_t>[]> counts;  // NOLINT(modernize-avoid-c-arrays)
  };
  struct place {
    std::uint64_t rank;
    std::int64_t lowest;  // of the range that holds it; the value where it is 0 bits wide
    std::uint64_t before;
    unsigned width_bits;
  };

  void look_for(std::uint64_t rank, const kept_durations& counted);
  void make_ranges();

  std::uint64_t count_;
  std::vector<place> places_;  // by rank
  std::vector<range> ranges_;
};

/// Calls `look_at_all(on_duration)` until all searches are done; that calls `on_duration(which,
/// ns)` for each duration of each, in any order, from any thread.
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

/// The percentiles that a distribution has.
const std::vector<double>& described_shares();
/// Of durations that are not all there. @param search  done, for described_shares().
distribution describe(const kept_durations& counted, const percentile_search& search);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TIMES_PERCENTILE_SEARCH_HPP
