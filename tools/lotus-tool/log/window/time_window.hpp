// A part of a run's time.
#ifndef LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP

#include <cstdint>
#include <optional>

namespace lotus::tool {

/// Both ends belong to it; without one it reaches as far as the run.
struct time_window {
  std::optional<std::int64_t> from_ns = {};
  std::optional<std::int64_t> to_ns = {};
  std::optional<std::int64_t> whole_from_ns =
      {};  ///< of what began before, limits have deleted some

  /// Whether something of that time reaches into it, and all of its kind is there.
  bool has(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns.value_or(start_ns) && end_ns >= from_ns.value_or(end_ns) &&
           start_ns >= whole_from_ns.value_or(start_ns);
  }
};

/// What is read of a run of which only a part was asked for.
struct read_window {
  time_window read;               ///< the part, and as much before and behind it as belongs to it
  std::int64_t run_first_ns = 0;  ///< of the whole run, as the ends of its logs tell it
  std::int64_t run_last_ns = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
