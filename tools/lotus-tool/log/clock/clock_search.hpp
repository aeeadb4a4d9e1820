// Finds out whether the computer's clock was set during a run.
#ifndef LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP
#define LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP

#include <memory>
#include <string>
#include <vector>

#include "log/clock/clock_step.hpp"
#include "log/clock/clock_watch.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Whether it is worth to search: some log goes back, or all are silent for a large part of the
/// run.
bool may_have_been_set(const std::vector<clock_watch>& watches);

/// Reads the logs of the run once more and returns how the clock was set; nullptr if it was not, or
/// if that cannot be told. What counts is that at least two threads, and at least half of those
/// that worked before and after, show the same:
/// - set back: lines that end before earlier ones began, and lines after these that do as well;
/// - set forward, or the computer was suspended: each thread goes on as late as it stopped, so the
///   pauses of threads that stopped at different times are equally long. After a real pause of the
///   program, threads go on together, and those that stopped last paused least. If spans were
///   open, they do not end together, and are as long as others of their names without the pause.
/// @param watches  those of the run's logs, in their order.
std::shared_ptr<const clock_step> find_clock_step(const run_files& run,
                                                  const std::vector<clock_watch>& watches);

/// Whether the times that find_clock_step() has corrected show another setting.
/// @param watches  those of the corrected logs.
bool was_set_again(const run_files& run, const std::vector<clock_watch>& watches);

/// What stands for several settings of the clock: it corrects nothing, and no verdict is possible.
std::shared_ptr<const clock_step> several_clock_steps();
bool are_several(const clock_step& step) noexcept;

/// Says in one line how the clock was set and what follows from it.
std::string described(const clock_step& step);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_CLOCK_CLOCK_SEARCH_HPP
