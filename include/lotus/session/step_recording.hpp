// Determines which steps of a lotus::schedule are recorded, and in which folder.
#ifndef LOTUS_SESSION_STEP_RECORDING_HPP
#define LOTUS_SESSION_STEP_RECORDING_HPP

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A range of consecutive steps that are recorded together, from `first` up to but not including
/// `end`. The range is empty if `end` is 0.
struct step_window {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  bool operator==(const step_window& other) const noexcept {
    return first == other.first && end == other.end;
  }
};

/// Returns the range of recorded steps that contains the step number `step`; an empty range if this
/// step is not recorded.
/// @param steps  the schedule; its `active` must not be 0.
inline step_window window_of(const schedule& steps, std::uint64_t step) noexcept {
  if (step < steps.skip_first) return {};
  const std::uint64_t left_out = std::uint64_t{steps.wait} + steps.warmup;
  const std::uint64_t cycle = left_out + steps.active;
  // As in PyTorch, skip_first_wait makes the first cycle begin as if its wait were already over.
  const std::uint64_t waited = steps.skip_first_wait != 0 ? steps.wait : 0;
  const std::uint64_t round = (step - steps.skip_first + waited) / cycle;
  if (steps.repeat != 0 && round >= steps.repeat) return {};
  const std::uint64_t first = steps.skip_first + round * cycle + left_out - waited;
  return step < first ? step_window{} : step_window{first, first + steps.active};
}

/// A schedule and the number of the program's current step. Not thread-safe.
class LOTUS_DETAIL_PER_MODULE step_recording {
 public:
  /// Begins to apply a schedule, at step 0. Returns false, after reporting the reason, if the
  /// schedule has no active steps or options::log_file is too long.
  bool start(const options& chosen, const schedule& steps) noexcept {
    running_ = false;
    if (steps.active == 0) {
      say("lotus::schedule: active is 0, so no step would be recorded");
      return false;
    }
    const int error = location_.parse(chosen.log_file);
    if (error != 0) {
      say("%s: %s", chosen.log_file.c_str(), std::strerror(error));
      return false;
    }
    chosen_ = chosen;
    // The text of log_file is freed, because location_ already contains its directory and prefix.
    // The session is never destroyed, so leak checkers would report the memory of the text.
    chosen_.log_file = {};
    steps_ = steps;
    step_ = 0;
    running_ = true;
    return true;
  }
  void stop() noexcept { running_ = false; }
  bool running() const noexcept { return running_; }
  void advance() noexcept { ++step_; }

  step_window window() const noexcept {
    return running_ ? window_of(steps_, step_) : step_window{};
  }
  bool active() const noexcept { return window().end != 0; }

  /// Returns the options with which the current range of steps is recorded, in a folder of its own:
  /// DIRECTORY/steps_FIRST_LAST.
  options of_active() const {
    step_notice notice;
    write_folder(notice.folder);
    options of = chosen_;
    of.log_file = notice.folder;
    return of;
  }

  /// Fills in the notice with which step() and stop() report that the current range of steps was
  /// recorded. Returns whether the caller must call the listener in the notice.
  bool fill(step_notice& notice) const noexcept {
    notice.listener = steps_.on_trace_ready;
    write_folder(notice.folder);
    *std::strrchr(notice.folder, '/') = '\0';
    return static_cast<bool>(steps_.on_trace_ready);
  }

 private:
  /// Writes the path of the current range's folder, followed by '/' and the prefix of its logs.
  void write_folder(char (&to)[sizeof(step_notice::folder)]) const noexcept {
    const step_window window = this->window();
    std::snprintf(to, sizeof to, "%s/steps_%llu_%llu/%s", location_.directory,
                  static_cast<unsigned long long>(window.first),
                  static_cast<unsigned long long>(window.end - 1), location_.prefix);
  }

  bool running_ = false;
  std::uint64_t step_ = 0;
  schedule steps_;
  options chosen_;
  log_location location_{};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_STEP_RECORDING_HPP
