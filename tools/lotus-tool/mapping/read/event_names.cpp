#include "mapping/read/event_names.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {
namespace {

/// Removes modifiers: "cpu-clock:u" becomes "cpu-clock", "cpu_core/cycles/u" becomes "cycles".
std::string_view without_modifiers(std::string_view event) noexcept {
  const std::size_t slash = event.find('/');
  if (slash != std::string_view::npos) event.remove_prefix(slash + 1);
  return event.substr(0, event.find_first_of(":/"));
}

bool is_cycles(std::string_view event) noexcept {
  event = without_modifiers(event);
  return event == "cycles" || event == "cpu-cycles";
}

}  // namespace

bool is_cpu_time(std::string_view event) noexcept {
  event = without_modifiers(event);
  return event == "cpu-clock" || event == "task-clock";
}

std::size_t index_of_time_event(const std::vector<std::string>& events) noexcept {
  for (const auto is_time : {is_cpu_time, is_cycles}) {
    const auto at = std::find_if(events.begin(), events.end(), is_time);
    if (at != events.end()) return static_cast<std::size_t>(at - events.begin());
  }
  return 0;
}

}  // namespace lotus::tool
