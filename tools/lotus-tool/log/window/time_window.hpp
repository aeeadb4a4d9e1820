// Defines ranges of time that a command reads from a run.
#ifndef LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP

#include <cstdint>
#include <optional>

namespace lotus::tool {

/// A range of time with inclusive ends, in ns since 1970. If an end is missing, the range extends
/// to the end of the run on that side.
struct time_window {
  std::optional<std::int64_t> from_ns = {};
  std::optional<std::int64_t> to_ns = {};
  /// If set, some records from before this time are missing, because they were deleted to limit the
  /// size of logs.
  std::optional<std::int64_t> whole_from_ns = {};

  /// Whether a span overlaps the window and began at whole_from_ns or later.
  bool has(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns.value_or(start_ns) && end_ns >= from_ns.value_or(end_ns) &&
           start_ns >= whole_from_ns.value_or(start_ns);
  }
};

/// The time range that is read from a run of which only a part is wanted.
struct read_window {
  /// The wanted part and the margins before and after it.
  time_window read;
  /// Start and end of the whole run, as found in samples of its logs; nullopt: those of the records
  /// that are read.
  std::optional<std::int64_t> run_first_ns = {};
  std::optional<std::int64_t> run_last_ns = {};
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_TIME_WINDOW_HPP
