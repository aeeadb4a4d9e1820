// Notices, while logs are read, that the computer's clock may have been set during the run, and
// finds out whether it was.
#ifndef LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP
#define LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/clock/clock_step.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// A time without any record: none begins or ends in it. A span may be open all the time.
struct silence {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

/// Watches the times of one log. Costs two comparisons per line.
class clock_watch {
 public:
  /// Sees the next line of the log.
  void see(std::int64_t start_ns, std::int64_t end_ns) noexcept {
    if (end_ns - latest_ns_ > longest_ns_) see_silence(start_ns, end_ns);
    if (end_ns < latest_start_ns_ - least_back_ns) goes_back_ = true;
    if (start_ns > latest_start_ns_) latest_start_ns_ = start_ns;
    if (end_ns > latest_ns_) latest_ns_ = end_ns;
  }

  /// Whether a line ended clearly before an earlier one began.
  bool goes_back() const noexcept { return goes_back_; }

  /// Returns the time of at least 10 s in which all of these logs are silent; nullopt if there is
  /// none, or if it is not much of the run.
  static std::optional<silence> common(const std::vector<clock_watch>& logs);

  static constexpr std::int64_t least_back_ns = 100'000'000;

 private:
  static constexpr std::int64_t least_silence_ns = 10'000'000'000;

  void see_silence(std::int64_t start_ns, std::int64_t end_ns) noexcept;
  void take(std::int64_t from_ns, std::int64_t to_ns) noexcept;

  silence longest_;
  std::int64_t longest_ns_ = least_silence_ns;
  std::int64_t first_ns_ = 0;
  std::int64_t latest_ns_ = 0;  // 0 before the first line
  std::int64_t latest_start_ns_ = 0;
  bool goes_back_ = false;
};

/// Whether the clock may have been set, so that find_clock_step() should search: a log goes back,
/// or all logs are silent for a large part of the run.
bool may_have_been_set(const std::vector<clock_watch>& watches);

/// Reads the logs of the run once more and returns how the clock was set; nullptr if it was not, or
/// if that cannot be determined. At least two threads, and at least half of those that worked
/// before and after, must show the same:
/// - set back: lines that end before earlier ones began, and lines after these that do as well;
/// - set forward, or the computer was suspended: the pauses of threads that stopped at different
///   times are equally long. After a real pause of the
///   program, threads go on together, and those that stopped last paused least. If spans were
///   open, they do not end together, and are as long as others of their names without the pause.
/// @param watches  those of the run's logs, in their order.
std::shared_ptr<const clock_step> find_clock_step(const run_files& run,
                                                  const std::vector<clock_watch>& watches);

/// Whether the times that find_clock_step() has corrected show that the clock was set once more.
/// @param watches  those of the corrected logs.
bool was_set_again(const run_files& run, const std::vector<clock_watch>& watches);

/// Returns the clock_step of a run during which the clock was set several times: it corrects
/// nothing, and no verdict is possible.
std::shared_ptr<const clock_step> several_clock_steps();
bool are_several(const clock_step& step) noexcept;

/// Says in one line how the clock was set and what follows from it.
std::string described(const clock_step& step);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP
