// Corrects the times in logs for one setting of the computer's clock during the run.
#ifndef LOTUS_TOOL_LOG_CLOCK_CLOCK_STEP_HPP
#define LOTUS_TOOL_LOG_CLOCK_CLOCK_STEP_HPP

#include <algorithm>
#include <cstdint>

#include "log/log_line.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {

/// One setting of the clock, or a suspension of the computer, that all threads of a run saw. See
/// clock_search.hpp for how it is found.
struct clock_step {
  std::int64_t first_ns = 0;    ///< the first time in the run
  std::int64_t last_ns = 0;     ///< the last start before the clock was set
  std::int64_t next_ns = 0;     ///< the first time after it; before last_ns if it was set back
  std::int64_t missing_ns = 0;  ///< what to add to later times; negative if it was set forward

  bool is_back() const noexcept { return next_ns < last_ns; }
};

/// Corrects the lines of one log. Call correct() for each line, in the order of the log.
///
/// If the clock was set forward, no time lies between last_ns and next_ns, so each time shows
/// whether it was recorded before or after. If the clock was set back, the same times occur twice.
/// A thread writes a line when the span ends, so the first line that ends before an earlier line
/// began was written afterwards. A span that was open meanwhile has a start from before. Its
/// duration is right if a steady clock measured it, and wrong if it is the difference of two times.
class clock_follower {
 public:
  explicit clock_follower(const clock_step* step) noexcept : step_(step) {}

  /// Whether there is anything to correct.
  bool active() const noexcept { return step_ != nullptr; }

  /// Returns whether the line is possible: false if its duration is negative even now.
  bool correct(log_line& line) noexcept {
    correct(line.start_ns, line.duration_ns);
    if (step_->missing_ns == 0) return true;
    // The time at which the clock was set is known only up to the next line.
    if (line.duration_ns > -between_lines_ns) {
      line.duration_ns = std::max<std::int64_t>(0, line.duration_ns);
    }
    return line.duration_ns >= 0;
  }
  bool correct(side_line& line) noexcept {
    std::int64_t none = 0;
    correct(line.time_ns, line.is_span() ? line.columns[0] : none);
    return true;
  }

 private:
  static constexpr std::int64_t between_lines_ns = 100'000'000;
  static constexpr std::int64_t tolerance_ns = 1'000'000;  // lines may be written in another order

  void correct(std::int64_t& start_ns, std::int64_t& duration_ns) noexcept {
    const std::int64_t end_ns = start_ns + duration_ns;
    if (!step_->is_back()) {
      if (start_ns >= step_->next_ns) {
        start_ns += step_->missing_ns;
      } else if (end_ns >= step_->next_ns) {
        duration_ns += step_->missing_ns;
      }
      return;
    }
    after_ = after_ || duration_ns < 0 || end_ns < latest_start_ns_ - tolerance_ns ||
             start_ns > step_->last_ns || end_ns < step_->first_ns;
    const bool is_before = !after_ || (start_ns <= step_->last_ns && duration_ns >= 0 &&
                                       end_ns >= latest_end_ns_ - tolerance_ns);
    if (!is_before) {
      const bool was_open = duration_ns < 0 || start_ns < step_->next_ns - tolerance_ns;
      (was_open ? duration_ns : start_ns) += step_->missing_ns;
    }
    latest_start_ns_ = std::max(latest_start_ns_, start_ns);
    latest_end_ns_ = std::max(latest_end_ns_, start_ns + duration_ns);
  }

  const clock_step* step_;
  bool after_ = false;  // whether a line from after the setting was read
  // Of the corrected lines so far. Half the smallest number, so that differences do not overflow.
  std::int64_t latest_start_ns_ = INT64_MIN / 2;
  std::int64_t latest_end_ns_ = INT64_MIN / 2;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_CLOCK_CLOCK_STEP_HPP
