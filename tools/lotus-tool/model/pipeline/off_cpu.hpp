// Computes when a thread was off the CPU, and how much of a span that was.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/process_info.hpp"

namespace lotus::tool {

/// How a span's wall time was spent. `run_queue_ns` and `blocked_ns` are missing if it is unknown
/// which of them applies.
struct cpu_split {
  std::int64_t cpu_ns = 0;                   ///< the thread ran
  std::optional<std::int64_t> run_queue_ns;  ///< the thread waited for a CPU
  std::optional<std::int64_t> blocked_ns;    ///< it waited for something else: disk, lock, sleep

  cpu_split& operator+=(const cpu_split& other);
};

/// An interval off the CPU, from one record. It may combine several intervals with running in
/// between; their positions inside it are unknown and not needed.
struct off_cpu_stretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t run_queue_ns = -1;  ///< -1: unknown

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// What a thread mostly did in an interval off the CPU.
enum class off_cpu_reason : std::uint8_t { blocked, no_cpu, unknown };
constexpr off_cpu_reason reason_of(const off_cpu_stretch& s) noexcept {
  if (s.run_queue_ns < 0) return off_cpu_reason::unknown;
  return 2 * s.run_queue_ns > s.duration_ns() ? off_cpu_reason::no_cpu : off_cpu_reason::blocked;
}

/// The intervals off the CPU of one thread, in order of time; they do not overlap.
///
/// A line off_cpu with time t and length n means that the thread was off the CPU for n since the
/// last begin or end of a span before t, or since the previous line. So n fits in between, and the
/// innermost span did not change during [t - n, t]: the time off the CPU is assigned to this
/// interval, and a span contains what overlaps with it. Waiting for a CPU is assigned to the end of
/// the interval, because a blocked thread waits for a CPU when it is woken. Two clocks may disagree
/// by microseconds; then an interval is cut at the end of the one before, and a span's share at the
/// ends of the span.
class off_cpu_time {
 public:
  off_cpu_time() = default;
  /// @param lines    in any order, with the time of the line as end_ns and its length in between.
  /// @param measure  what the process of the thread measured.
  off_cpu_time(std::vector<off_cpu_stretch> lines, cpu_measure measure);

  /// Whether anything is known: false if nothing was measured, or if it is not recorded what was.
  bool known() const noexcept { return measure_ == cpu_measure::switches; }
  /// Whether it is known at least for whole batches.
  bool known_of_batches() const noexcept { return known() || measure_ == cpu_measure::batches; }

  /// Splits the wall time [start_ns, end_ns]; 0 <= cpu <= wall. Takes logarithmic time, and
  /// constant time for spans in order of their ends. Not thread-safe.
  cpu_split split(std::int64_t start_ns, std::int64_t end_ns) const;

  const std::vector<off_cpu_stretch>& stretches() const noexcept { return stretches_; }

 private:
  std::vector<off_cpu_stretch> stretches_;
  // Sums over all intervals before each one, and after the last; unknown_ns sums the lengths of
  // those with an unknown reason.
  struct sums {
    std::int64_t off_ns = 0;
    std::int64_t run_queue_ns = 0;
    std::int64_t unknown_ns = 0;
  };
  sums before(std::int64_t time_ns) const;

  std::vector<sums> sums_;
  cpu_measure measure_ = cpu_measure::unknown;
  mutable std::size_t hint_ = 0;  // index found by the last call
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
