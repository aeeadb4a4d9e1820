// Steps by number: which are recorded, and where.
#ifndef LOTUS_SESSION_STEP_RECORDING_HPP
#define LOTUS_SESSION_STEP_RECORDING_HPP

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Steps that are recorded together, or with `behind` of 0 none.
struct step_window {
  std::uint64_t first = 0;
  std::uint64_t behind = 0;

  bool operator==(const step_window& other) const noexcept {
    return first == other.first && behind == other.behind;
  }
};

/// The window that a step lies in. @param counts  its `active` is not 0.
inline step_window window_of(const step_counts& counts, std::uint64_t step) noexcept {
  if (step < counts.skip_first) return {};
  const std::uint64_t left_out = std::uint64_t{counts.wait} + counts.warmup;
  const std::uint64_t cycle = left_out + counts.active;
  const std::uint64_t round = (step - counts.skip_first) / cycle;
  if (counts.repeat != 0 && round >= counts.repeat) return {};
  const std::uint64_t first = counts.skip_first + round * cycle + left_out;
  return step < first ? step_window{} : step_window{first, first + counts.active};
}

/// Where a program is in its schedule. Thread safety: none.
class LOTUS_DETAIL_PER_MODULE step_recording {
 public:
  /// Begins with step 0; false, after saying why, where that cannot be.
  bool start(const options& chosen, const step_counts& counts,
             const step_listener* listener) noexcept {
    running_ = false;
    if (counts.active == 0) {
      say("lotus::schedule: active is 0, so no step would be recorded");
      return false;
    }
    const int error = location_.parse(chosen.log_file);
    if (error != 0) {
      say("%s: %s", chosen.log_file.c_str(), std::strerror(error));
      return false;
    }
    chosen_ = chosen;
    // In location_ already; and what a session holds in the heap looks leaked, as it never ends.
    std::string{}.swap(chosen_.log_file);
    counts_ = counts;
    listener_ = listener;
    step_ = 0;
    running_ = true;
    return true;
  }
  void stop() noexcept { running_ = false; }
  bool running() const noexcept { return running_; }
  void advance() noexcept { ++step_; }

  step_window window() const noexcept {
    return running_ ? window_of(counts_, step_) : step_window{};
  }
  bool active() const noexcept { return window().behind != 0; }

  /// How the active steps are recorded: in a folder of their own, DIRECTORY/steps_FIRST_LAST.
  options of_active() const {
    step_notice notice;
    write_folder(notice.folder);
    options of = chosen_;
    of.log_file = notice.folder;
    return of;
  }

  /// That the active steps are over. @return whether there is somebody to tell.
  bool fill(step_notice& notice) const noexcept {
    notice.listener = listener_;
    write_folder(notice.folder);
    *std::strrchr(notice.folder, '/') = '\0';
    return listener_ != nullptr;
  }

 private:
  /// With the logs' prefix.
  void write_folder(char (&to)[sizeof(step_notice::folder)]) const noexcept {
    const step_window steps = window();
    std::snprintf(to, sizeof to, "%s/steps_%llu_%llu/%s", location_.directory,
                  static_cast<unsigned long long>(steps.first),
                  static_cast<unsigned long long>(steps.behind - 1), location_.prefix);
  }

  bool running_ = false;
  std::uint64_t step_ = 0;
  step_counts counts_{};
  const step_listener* listener_ = nullptr;
  options chosen_;
  log_location location_{};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_STEP_RECORDING_HPP
