// Time in a replay.
#ifndef LOTUS_TOOL_REPLAY_CLOCKS_HPP
#define LOTUS_TOOL_REPLAY_CLOCKS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "replay/plan.hpp"

namespace lotus::tool {

/// Threads that are blocked wake at a time; those on the CPU end when they have done their work,
/// which all do at the same speed: so each ends at a reading of a clock that runs at that speed.
class replay_clocks {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit replay_clocks(const speed_law& speed) : speed_(speed) {}

  double now_ns() const noexcept { return now_ns_; }
  void at(double time_ns, std::uint32_t thread) { sleeping_.emplace(time_ns, thread); }
  void run(double cpu_ns, std::uint32_t thread) {
    running_.emplace(done_ns_ + cpu_ns, thread);
    new_speed();
  }

  /// Goes on to the next event. Returns its thread; none where nothing is to come.
  std::uint32_t next() {
    const double wakes_ns = sleeping_.empty() ? HUGE_VAL : sleeping_.top().first;
    const double ends_ns =
        running_.empty() ? HUGE_VAL : now_ns_ + (running_.top().first - done_ns_) / rate_;
    const double at_ns = std::min(wakes_ns, ends_ns);
    if (at_ns == HUGE_VAL) return none;
    done_ns_ += (at_ns - now_ns_) * rate_;
    now_ns_ = at_ns;
    auto& from = ends_ns <= wakes_ns ? running_ : sleeping_;
    const std::uint32_t thread = from.top().second;
    if (&from == &running_) done_ns_ = from.top().first;
    from.pop();
    new_speed();
    return thread;
  }

 private:
  using event = std::pair<double, std::uint32_t>;
  using events = std::priority_queue<event, std::vector<event>, std::greater<>>;

  void new_speed() { rate_ = speed_.speed(static_cast<double>(running_.size())); }

  const speed_law& speed_;
  events sleeping_;
  events running_;
  double now_ns_ = 0;
  double done_ns_ = 0;  // work of each thread that was on the CPU all the time
  double rate_ = 1;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CLOCKS_HPP
