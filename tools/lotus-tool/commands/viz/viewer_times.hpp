// Writes durations so that slices also nest in a viewer's floating-point arithmetic.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP

#include <cstdint>
#include <vector>

namespace lotus::tool {

/// Writes the durations of a track's slices as µs. Viewers read numbers as doubles and add them: a
/// slice that ends at 123.797 + 170.812 then overlaps the next one, which starts at 294.609, or its
/// parent's end. If that would happen, also after subtracting the track's first start from all
/// starts, as speedscope does, the duration is written as the largest smaller double that keeps the
/// order: shorter by at most two units in the last place of a start, 0.001 ns in a run's first
/// hour.
class viewer_times {
 public:
  /// Writes the duration of a slice whose start is written by put_us(). Needs at most 24 bytes.
  /// Slices come in order of start, the longer first, and nest.
  char* put_duration(char* to, std::int64_t start_ns, std::int64_t duration_ns);

  /// Call this before the first slice of another track.
  void change_track() noexcept {
    open_.clear();
    first_us_ = no_start;
  }

 private:
  static constexpr double no_start = -1e300;

  /// Where a slice ends: exactly, as read, and as read after subtracting the first start.
  struct ends {
    std::int64_t ns;
    double us;
    double rebased_us;
  };
  std::vector<ends> open_;
  double first_us_ = no_start;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP
