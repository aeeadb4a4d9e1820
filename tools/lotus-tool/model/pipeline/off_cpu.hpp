// When a thread was off the CPU, and how much of a span that was.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/process_info.hpp"

namespace lotus::tool {

/// What became of a span's wall time. `run_queue_ns` and `blocked_ns` are missing where it is not
/// known which of them the thread did.
struct cpu_split {
  std::int64_t cpu_ns = 0;                   ///< its thread ran
  std::optional<std::int64_t> run_queue_ns;  ///< it waited for a CPU
  std::optional<std::int64_t> blocked_ns;    ///< it waited for something else: disk, lock, sleep

  cpu_split& operator+=(const cpu_split& other);
};

/// A stretch off the CPU: of one notice, so it may have been several with running between; then
/// their place within it is not known, nor needed.
struct off_cpu_stretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t run_queue_ns = -1;  ///< -1: not known

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// What a thread did off the CPU for the greater part.
enum class off_cpu_reason : std::uint8_t { blocked, no_cpu, unknown };
constexpr off_cpu_reason reason_of(const off_cpu_stretch& s) noexcept {
  if (s.run_queue_ns < 0) return off_cpu_reason::unknown;
  return 2 * s.run_queue_ns > s.duration_ns() ? off_cpu_reason::no_cpu : off_cpu_reason::blocked;
}

/// The stretches of one thread, in order of time; they do not overlap.
///
/// A line off_cpu of time t and length n says that the thread was off for n since the last begin or
/// end of a span before t, or the line before. So n fits between these, and what was innermost then
/// is what was innermost during all of [t - n, t]: time off the CPU is put there, and that of a
/// span is what of it lies within. Waiting for a CPU is put at its end: who was blocked and is
/// woken waits then. Readings of two clocks may disagree by microseconds; then a stretch is cut
/// where the one before ends, and the share of a span where the span does.
class off_cpu_time {
 public:
  off_cpu_time() = default;
  /// @param lines    in any order, with the time of the notice as end_ns, its length between.
  /// @param measure  what the thread's process measured.
  off_cpu_time(std::vector<off_cpu_stretch> lines, cpu_measure measure);

  /// Whether anything is known: false where nothing was measured, or nobody says what was.
  bool known() const noexcept { return measure_ == cpu_measure::switches; }
  /// Known of whole batches, at least.
  bool known_of_batches() const noexcept { return known() || measure_ == cpu_measure::batches; }

  /// Of the wall time [start_ns, end_ns]; 0 <= cpu <= wall. Logarithmic, and constant for spans in
  /// order of their ends. Not thread-safe.
  cpu_split split(std::int64_t start_ns, std::int64_t end_ns) const;

  const std::vector<off_cpu_stretch>& stretches() const noexcept { return stretches_; }

 private:
  std::vector<off_cpu_stretch> stretches_;
  // Sums of what lies before each stretch, and behind the last; of unknown ones their lengths.
  struct sums {
    std::int64_t off_ns = 0;
    std::int64_t run_queue_ns = 0;
    std::int64_t unknown_ns = 0;
  };
  sums before(std::int64_t time_ns) const;

  std::vector<sums> sums_;
  cpu_measure measure_ = cpu_measure::unknown;
  mutable std::size_t hint_ = 0;  // where the last span was found
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
