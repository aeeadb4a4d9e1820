#include "replay/recorded/bound_finder.hpp"

#include <algorithm>

namespace lotus::tool {

void bound_finder::add(const std::vector<begin_of_unit>& begins,
                       const std::vector<std::int64_t>& takes, double late_ns) {
  for (std::size_t i = 0; i < begins.size(); ++i) {
    auto next = std::upper_bound(takes.begin(), takes.end(), begins[i].time_ns);
    const bool late = begins[i].was_idle && next != takes.end() &&
                      static_cast<double>(*next - begins[i].time_ns) <= late_ns;
    if (late) ++next;
    const std::size_t ahead = i + 1 - std::min(static_cast<std::size_t>(next - takes.begin()), i);
    if (held_.size() <= ahead) held_.resize(ahead + 1);
    ++held_[ahead].all;
    if (begins[i].was_idle) ++held_[ahead].after_idling;
  }
}

bound_seen bound_finder::found() const {
  std::size_t after_idling = 0;
  std::size_t all = 0;
  for (const begin_counts& n : held_) {
    after_idling += n.after_idling;
    all += n.all;
  }
  const std::size_t most = held_.empty() ? 0 : held_.size() - 1;
  constexpr std::size_t fewest = 3;
  if (after_idling >= fewest) {
    const auto usual = std::max_element(held_.begin(), held_.end(), [](auto& a, auto& b) {
      return a.after_idling < b.after_idling;
    });
    const auto at = static_cast<std::size_t>(usual - held_.begin());
    // If the queue has a limit, it is usually at the limit when an idle thread begins to work
    // again. It is enough if this is so in half of the cases, because the queue contains fewer
    // units at the start and at the end of an epoch. But if more units than this were begun more
    // often, this is no limit: the threads were late for another reason, such as a preemption.
    const std::size_t above = at < most ? held_[most].all : 0;
    if (2 * usual->after_idling >= after_idling && at + 1 >= most && above <= usual->after_idling) {
      return {at, true, 2 * after_idling > all};
    }
  }
  return {most};
}

}  // namespace lotus::tool
