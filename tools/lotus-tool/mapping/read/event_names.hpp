// Determines, from the name of a sampled event, what the event measures.
#ifndef LOTUS_TOOL_MAPPING_READ_EVENT_NAMES_HPP
#define LOTUS_TOOL_MAPPING_READ_EVENT_NAMES_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Whether an event measures CPU time in ns, as cpu-clock and task-clock do.
bool is_cpu_time(std::string_view event) noexcept;

/// Returns the index of the event that best measures time: an event of CPU time, else cycles, else
/// the first event. Returns 0 if the list is empty.
std::size_t index_of_time_event(const std::vector<std::string>& events) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_EVENT_NAMES_HPP
