// Time in a replay.
#ifndef LOTUS_TOOL_REPLAY_CLOCKS_HPP
#define LOTUS_TOOL_REPLAY_CLOCKS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "replay/plan.hpp"

namespace lotus::tool {

/// Threads that are blocked wake at a time; those that run share CPUs as Linux lets them: one that
/// wakes goes to the CPU with the fewest threads, which share it evenly, and stays there; a CPU
/// that has none left takes one over from the fullest. Where there is always a CPU free, or a part
/// of one only, all threads go at one speed. Not thread-safe.
class replay_clocks {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit replay_clocks(const speed_law& speed)
      : speed_(speed), one_by_one_(speed.cpus >= 1 && speed.cpus == std::floor(speed.cpus)) {
    cpus_.resize(one_by_one_ ? static_cast<std::size_t>(speed.cpus) : 1);
  }

  double now_ns() const noexcept { return now_ns_; }
  void at(double time_ns, std::uint32_t thread) { sleeping_.emplace(time_ns, thread); }
  void run(double cpu_ns, std::uint32_t thread) {
    cpu& to = *std::min_element(cpus_.begin(), cpus_.end(), [](const cpu& a, const cpu& b) {
      return a.threads.size() < b.threads.size();
    });
    if (to.threads.empty()) ++busy_;
    to.threads.emplace_back(to.done_ns + cpu_ns, thread);
    new_speeds();
  }

  /// Goes on to the next event. Returns its thread; none where nothing is to come.
  std::uint32_t next() {
    double at_ns = sleeping_.empty() ? HUGE_VAL : sleeping_.top().first;
    cpu* ending = nullptr;
    for (cpu& c : cpus_) {
      if (c.threads.empty()) continue;
      const double ends_ns = now_ns_ + (first_of(c)->first - c.done_ns) / c.rate;
      if (ends_ns > at_ns) continue;
      at_ns = ends_ns;
      ending = &c;
    }
    if (at_ns == HUGE_VAL) return none;
    for (cpu& c : cpus_) c.done_ns += (at_ns - now_ns_) * c.rate;
    now_ns_ = at_ns;
    if (ending != nullptr) return end_first(*ending);
    const std::uint32_t thread = sleeping_.top().second;
    sleeping_.pop();
    return thread;
  }

 private:
  using event = std::pair<double, std::uint32_t>;
  struct cpu {
    std::vector<event> threads;  // and what done_ns will be at their ends
    double done_ns = 0;          // work of each thread that was here all the time
    double rate = 0;
  };

  static std::vector<event>::iterator first_of(cpu& c) {
    return std::min_element(c.threads.begin(), c.threads.end());
  }

  std::uint32_t end_first(cpu& c) {
    const auto first = first_of(c);
    const std::uint32_t thread = first->second;
    c.done_ns = first->first;
    c.threads.erase(first);
    if (c.threads.empty()) {
      --busy_;
      take_over(c);
    }
    new_speeds();
    return thread;
  }

  void take_over(cpu& to) {
    cpu& from = *std::max_element(cpus_.begin(), cpus_.end(), [](const cpu& a, const cpu& b) {
      return a.threads.size() < b.threads.size();
    });
    if (from.threads.size() < 2) return;
    const event last = from.threads.back();
    from.threads.pop_back();
    to.threads.emplace_back(to.done_ns + (last.first - from.done_ns), last.second);
    ++busy_;
  }

  void new_speeds() {
    if (!one_by_one_) {
      cpus_.front().rate = speed_.speed(static_cast<double>(cpus_.front().threads.size()));
      return;
    }
    const double longer = speed_.longer(static_cast<double>(busy_));
    for (cpu& c : cpus_) {
      c.rate = c.threads.empty() ? 0 : 1 / (longer * static_cast<double>(c.threads.size()));
    }
  }

  const speed_law& speed_;
  bool one_by_one_;
  std::priority_queue<event, std::vector<event>, std::greater<>> sleeping_;
  std::vector<cpu> cpus_;
  std::size_t busy_ = 0;  // CPUs
  double now_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CLOCKS_HPP
