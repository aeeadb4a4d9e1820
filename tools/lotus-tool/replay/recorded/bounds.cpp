#include "replay/recorded/bounds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lotus::tool {

void bound_finder::add(const std::vector<begin_of_unit>& begins,
                       const std::vector<std::int64_t>& takes, double late_ns) {
  for (std::size_t i = 0; i < begins.size(); ++i) {
    auto next = std::upper_bound(takes.begin(), takes.end(), begins[i].time_ns);
    const bool late = begins[i].was_idle && next != takes.end() &&
                      static_cast<double>(*next - begins[i].time_ns) <= late_ns;
    if (late) ++next;
    const std::size_t ahead = i + 1 - std::min(static_cast<std::size_t>(next - takes.begin()), i);
    most_ = std::max(most_, ahead);
    if (!begins[i].was_idle) continue;
    if (after_idling_.size() <= ahead) after_idling_.resize(ahead + 1);
    ++after_idling_[ahead];
  }
}

bound_seen bound_finder::found() const {
  const std::size_t all =
      std::accumulate(after_idling_.begin(), after_idling_.end(), std::size_t{0});
  constexpr std::size_t fewest = 3;
  if (all >= fewest) {
    const auto most = std::max_element(after_idling_.begin(), after_idling_.end());
    const auto at = static_cast<std::size_t>(most - after_idling_.begin());
    // If the queue has a limit, it is usually at the limit when an idle thread begins to work
    // again. It is enough if this is so in half of the cases, because the queue contains fewer
    // units at the start and at the end of an epoch.
    if (2 * *most >= all && at + 1 >= most_) return {at, true};
  }
  return {most_, false};
}

}  // namespace lotus::tool
