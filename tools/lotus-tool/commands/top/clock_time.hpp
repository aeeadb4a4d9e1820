// Reads a clock of the operating system.
#ifndef LOTUS_TOOL_COMMANDS_TOP_CLOCK_TIME_HPP
#define LOTUS_TOOL_COMMANDS_TOP_CLOCK_TIME_HPP

#include <cstdint>
#include <ctime>

namespace lotus::tool {

/// Returns the time of a clock in ns. For CLOCK_REALTIME, this is the time since 1970.
inline std::int64_t time_of(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_CLOCK_TIME_HPP
