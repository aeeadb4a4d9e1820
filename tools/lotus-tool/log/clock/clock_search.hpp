// Finds out whether the computer's clock was set during a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "log/clock/clock_step.hpp"
#include "log/clock/clock_watch.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

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
