// Finds spans of one thread that overlap although neither contains the other.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_SPAN_OVERLAPS_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_SPAN_OVERLAPS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// Finds spans of one thread that overlap partly. Correctly recorded spans never do: they are
/// disjoint, or one contains the other. Add spans in the order of their ends, as in a log;
/// otherwise only overlaps with the most recent spans are found.
class span_overlaps {
 public:
  struct span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t name = 0;
  };

  /// Adds a span. Returns the earlier span that `next` overlaps partly, or nullopt.
  std::optional<span> push(const span& next) {
    std::optional<span> crossed;
    while (!spans_.empty() && spans_.back().end_ns > next.start_ns) {
      const span& last = spans_.back();
      if (crosses(last, next)) {
        crossed = last;
        if (last.start_ns < next.start_ns) break;
      } else if (last.start_ns < next.start_ns && last.end_ns >= next.end_ns) {
        return crossed;  // `last` contains `next`
      }
      spans_.pop_back();
    }
    if (spans_.size() == max_kept) spans_.erase(spans_.begin(), spans_.begin() + max_kept / 2);
    spans_.push_back(next);
    return crossed;
  }

 private:
  /// If two spans overlap by less than this, the difference comes from reading the clock separately
  /// for each span.
  static constexpr std::int64_t clocks_ns = 1000;
  static constexpr std::size_t max_kept = std::size_t{1} << 16U;

  static bool crosses(const span& a, const span& b) noexcept {
    const std::int64_t shared = std::min(a.end_ns, b.end_ns) - std::max(a.start_ns, b.start_ns);
    return shared > clocks_ns && (a.end_ns - a.start_ns) - shared > clocks_ns &&
           (b.end_ns - b.start_ns) - shared > clocks_ns;
  }

  std::vector<span> spans_;  // disjoint spans, sorted by their ends
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_SPAN_OVERLAPS_HPP
