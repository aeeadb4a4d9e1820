// Durations that nest in a viewer's arithmetic too.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP

#include <cstdint>
#include <vector>

namespace lotus::tool {

/// Writes the durations of a track's slices as µs. A viewer reads them as doubles and adds: in
/// 123.797 + 170.812 a slice then ends behind the next one, that starts at 294.609, or behind its
/// parent. Where that would happen, also after the track's first start was taken off all starts, as
/// speedscope does, the duration is written as the nearest double below that keeps the order:
/// shorter by at most two units in the last place of a start, 0.001 ns in a run's first hour.
class viewer_times {
 public:
  /// Puts the duration of a slice whose start is written by put_us(). Needs at most 24 bytes.
  /// Slices come in order of start, the longer first, and nest.
  char* put_duration(char* to, std::int64_t start_ns, std::int64_t duration_ns);

  /// The next slice is of another track.
  void change_track() noexcept {
    open_.clear();
    first_us_ = no_start;
  }

 private:
  static constexpr double no_start = -1e300;

  /// Where a slice ends: in truth, as read, and as read after the first start was taken off.
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
