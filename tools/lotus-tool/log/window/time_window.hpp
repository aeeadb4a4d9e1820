// A part of a run's time.
#ifndef LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP

#include <cstdint>
#include <optional>

namespace lotus::tool {

/// Both ends are inclusive; a missing end means that of the run.
struct time_window {
  std::optional<std::int64_t> from_ns = {};
  std::optional<std::int64_t> to_ns = {};
  std::optional<std::int64_t> whole_from_ns =
      {};  ///< limits have deleted some records of what began earlier

  /// Whether this time reaches into the window, and no records of its age were deleted.
  bool has(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns.value_or(start_ns) && end_ns >= from_ns.value_or(end_ns) &&
           start_ns >= whole_from_ns.value_or(start_ns);
  }
};

/// What is read of a run if only a part was requested.
struct read_window {
  time_window read;               ///< the part, extended by what belongs to it before and after
  std::int64_t run_first_ns = 0;  ///< of the whole run, according to the ends of its logs
  std::int64_t run_last_ns = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
