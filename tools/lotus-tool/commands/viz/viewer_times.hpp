// Writes durations such that slices also nest in a viewer's floating-point arithmetic.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP

#include <cstdint>
#include <vector>

namespace lotus::tool {

/// Writes the durations of a track's slices as µs. Viewers add starts and durations as doubles,
/// which are inexact: 123.797 + 170.812 is more than 294.609, so a slice that ends there would
/// overlap the next one or exceed its parent. In such a case a slightly shorter duration is
/// written, which avoids the overlap also when a viewer subtracts the track's first start from all
/// starts, as speedscope does. It is 0.001 ns shorter. If this is not enough, which is possible
/// after a run's first hour, the largest possible double is written, which is shorter by at most
/// two units in the last place of a start.
class viewer_times {
 public:
  /// Writes the duration of a slice whose start is written by put_us(), and returns the end of the
  /// text. Needs at most 24 bytes. Slices must nest, and come in order of start, the longer first.
  char* put_duration(char* to, std::int64_t start_ns, std::int64_t duration_ns);

  /// Call this before the first slice of another track.
  void change_track() noexcept {
    open_.clear();
    first_us_ = no_start;
  }

 private:
  static constexpr double no_start = -1e300;

  /// The end of one slice. Has a constructor, so that emplace_back() creates the object in its
  /// final place. Copying a temporary object would be slower, because the copy would wait until the
  /// object's numbers are in memory.
  struct ends {
    ends(std::int64_t exact_ns, double shown_us, double shown_rebased_us)
        : ns(exact_ns), us(shown_us), rebased_us(shown_rebased_us) {}
    std::int64_t ns;    ///< the exact value
    double us;          ///< the value that viewers compute
    double rebased_us;  ///< the value that viewers compute if they subtract the first start
  };
  std::vector<ends> open_;
  double first_us_ = no_start;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIEWER_TIMES_HPP
