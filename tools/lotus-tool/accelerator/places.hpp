// Finds where in the program devices were idle: operators, lines of Python, and named ranges.
#ifndef LOTUS_TOOL_ACCELERATOR_PLACES_HPP
#define LOTUS_TOOL_ACCELERATOR_PLACES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/host_timeline.hpp"
#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

struct named_time {
  std::string name;  ///< "" if nothing has a name
  std::int64_t ns = 0;
};

/// The gaps and the places in the program in which the idle time lies that the verdict names.
struct idle_places {
  std::size_t gaps = 0;
  std::int64_t all_ns = 0;
  std::int64_t longest_ns = 0;
  std::int64_t ten_longest_ns = 0;
  std::optional<std::uint64_t> step;  ///< the profiler's step with most of it
  std::int64_t step_ns = 0;
  /// What most of the time lies in, of the threads that launch work or wait for batches: the
  /// outermost operator, the innermost line of the user's own program, the innermost other range.
  named_time framework, line, annotation;
};

/// @param parts  parts of gaps.
idle_places find_places(const device_trace& trace, std::vector<cause_range> parts);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_PLACES_HPP
