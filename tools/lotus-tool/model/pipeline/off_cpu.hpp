// Computes when a thread was off the CPU, and for how much of each span.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/process_info.hpp"

namespace lotus::tool {

/// How a span's wall time divides into time on the CPU, time waiting for a CPU and blocked time of
/// its thread. `run_queue_ns` and `blocked_ns` are missing if it is unknown why the thread was off
/// the CPU.
struct cpu_split {
  std::int64_t cpu_ns = 0;                   ///< time during which the thread ran
  std::optional<std::int64_t> run_queue_ns;  ///< time during which the thread waited for a CPU
  /// Time during which the thread waited for a disk, a lock, a sleep and so on.
  std::optional<std::int64_t> blocked_ns;

  cpu_split& operator+=(const cpu_split& other);
};

/// Time off the CPU that one record reports. The thread may have been off the CPU several times,
/// and have run in between; the record has only the sum, which is stored as one interval.
struct off_cpu_interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t run_queue_ns = -1;  ///< time during which the thread waited for a CPU; -1: unknown

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// The main reason why a thread was off the CPU in an interval: it was blocked, or no CPU was free.
enum class off_cpu_reason : std::uint8_t { blocked, no_cpu, unknown };
constexpr off_cpu_reason reason_of(const off_cpu_interval& s) noexcept {
  if (s.run_queue_ns < 0) return off_cpu_reason::unknown;
  return 2 * s.run_queue_ns > s.duration_ns() ? off_cpu_reason::no_cpu : off_cpu_reason::blocked;
}

/// The intervals off the CPU of one thread, in order of time; they do not overlap.
///
/// An off_cpu line in a log has a time t and a length n. It means that the thread was off the CPU
/// for n ns since the last begin or end of a span before t, or since the previous off_cpu line.
/// Therefore no span began or ended during [t - n, t]. This class assumes that the thread was off
/// the CPU in this interval, and splits it among the spans that overlap with it. A wait for a CPU
/// is assumed at the end of the interval, because a blocked thread waits for a CPU after it is
/// woken. The clocks for wall time and for time off the CPU may disagree by microseconds; therefore
/// an interval is shortened where it overlaps with the previous interval or exceeds a span.
class off_cpu_time {
 public:
  off_cpu_time() = default;
  /// @param lines    intervals in any order: end_ns is the time t of the line, start_ns is t - n.
  /// @param measure  which CPU times the process of the thread measured.
  off_cpu_time(std::vector<off_cpu_interval> lines, cpu_measure measure);

  /// Returns whether the process measured time off the CPU at every context switch, so that it is
  /// known for every span.
  bool known() const noexcept { return measure_ == cpu_measure::switches; }
  /// Returns whether time off the CPU is known at least for complete waits, batches and steps.
  bool known_of_batches() const noexcept { return known() || measure_ == cpu_measure::batches; }

  /// Returns how the time from start_ns to end_ns was spent; the result's CPU time is never
  /// negative. Takes logarithmic time, or constant time if called for spans in order of their ends.
  /// Thread-safe.
  cpu_split split(std::int64_t start_ns, std::int64_t end_ns) const;

  const std::vector<off_cpu_interval>& intervals() const noexcept { return intervals_; }

 private:
  std::vector<off_cpu_interval> intervals_;
  // Sums over the intervals before some moment. `unknown_ns` is the total length of those intervals
  // for which it is unknown why the thread was off the CPU.
  struct sums {
    std::int64_t off_ns = 0;
    std::int64_t run_queue_ns = 0;
    std::int64_t unknown_ns = 0;
  };
  sums before(std::int64_t time_ns) const;

  std::vector<sums> sums_;
  cpu_measure measure_ = cpu_measure::unknown;
  // The index that the last call of before() found; the next call begins its search at this index.
  // The search is correct from any index, so threads access it atomically, but without order.
  mutable std::size_t hint_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_OFF_CPU_HPP
