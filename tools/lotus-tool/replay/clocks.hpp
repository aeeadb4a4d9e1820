// Simulates the passing of time and the scheduling of threads on CPUs.
#ifndef LOTUS_TOOL_REPLAY_CLOCKS_HPP
#define LOTUS_TOOL_REPLAY_CLOCKS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "replay/plan.hpp"

namespace lotus::tool {

/// Simulates when threads run. A blocked thread wakes at a given time. Runnable threads share the
/// CPUs in a similar way as on Linux:
/// - A thread that wakes goes to a CPU without threads; if there is none, to the one on which it
/// ran
///   last, unless that has at least two threads more than another. It stays there.
/// - The threads of a CPU run one after another, each for a time slice of speed_law::turn_ns.
///   Threads that have just woken run first.
/// - A CPU without threads waits for half a time slice, and then takes a thread from the CPU with
///   the most threads. (Half a time slice is the mean time until a slice ends on another CPU.)
///
/// If speed_law::turn_ns or speed_law::cpus is 0, if the number of CPUs is not an integer, or if
/// other programs compete for the CPUs (speed_law::others), there are no time slices: all threads
/// of a CPU run at the same time, each at reduced speed. Not thread-safe.
class replay_clocks {
 public:
  /// @param threads  the number of threads in the simulation. At most this many CPUs are simulated.
  explicit replay_clocks(const speed_law& speed, std::size_t threads = unbounded)
      : speed_(speed),
        one_by_one_(speed.cpus >= 1 && speed.cpus == std::floor(speed.cpus) && speed.others <= 0) {
    cpus_.resize(one_by_one_
                     ? std::clamp<std::size_t>(threads, 1, static_cast<std::size_t>(speed.cpus))
                     : 1);
  }

  double now_ns() const noexcept { return now_ns_; }
  void at(double time_ns, std::uint32_t thread) { sleeping_.emplace(time_ns, thread); }
  void run(double cpu_ns, std::uint32_t thread) {
    cpu& to = cpu_for(thread);
    if (has_time_slices() && !to.running.empty()) {
      if (to.waiting.empty()) to.event_ns = end_of_slice(to);
      to.waiting.insert(to.waiting.begin() + static_cast<std::ptrdiff_t>(to.woken++),
                        {cpu_ns, thread});
      return;
    }
    if (to.running.empty()) ++busy_;
    to.event_ns = HUGE_VAL;
    start(to, cpu_ns, thread);
    new_speeds();
  }

  /// Advances to the next event: a thread wakes or finishes its work. Returns the thread, or
  /// nullopt if there are no more events.
  optional_index<std::uint32_t> next() {
    while (true) {
      double at_ns = sleeping_.empty() ? HUGE_VAL : sleeping_.top().first;
      cpu* of = nullptr;  // CPU on which the next event occurs; nullptr if a thread wakes
      bool ends = false;
      for (cpu& c : cpus_) {
        const double end_ns =
            c.running.empty() ? HUGE_VAL : now_ns_ + (first_of(c)->first - c.done_ns) / c.rate;
        const double then_ns = std::min(end_ns, c.event_ns);
        if (then_ns > at_ns || then_ns == HUGE_VAL) continue;
        at_ns = then_ns;
        of = &c;
        ends = end_ns <= c.event_ns;
      }
      if (at_ns == HUGE_VAL) return {};
      for (cpu& c : cpus_) c.done_ns += (at_ns - now_ns_) * c.rate;
      now_ns_ = at_ns;
      if (of == nullptr) return wake_first();
      if (ends) return end_first(*of);
      if (of->running.empty()) {
        take_over(*of);
      } else {
        end_turn(*of);
      }
    }
  }

 private:
  using event = std::pair<double, std::uint32_t>;
  struct cpu {
    // Running threads, each with the value of done_ns at which it has completed its work.
    std::vector<event> running;
    std::deque<event> waiting;  // threads that wait for a time slice, with their remaining work
    std::size_t woken = 0;      // number of threads in `waiting` that have not run since they woke
    // How much work, in ns, a thread would have completed if it had always run on this CPU.
    double done_ns = 0;
    double rate = 0;
    double slice_began_ns = 0;
    /// Time of the CPU's next scheduling event. If threads wait for the CPU, this is the end of the
    /// current time slice; if the CPU has no thread, it is when the CPU takes one from another CPU.
    double event_ns = HUGE_VAL;

    std::size_t threads() const noexcept { return running.size() + waiting.size(); }
  };

  static bool fewer_threads(const cpu& a, const cpu& b) noexcept {
    return a.threads() < b.threads();
  }

  /// Returns the CPU on which a thread that wakes will run.
  cpu& cpu_for(std::uint32_t thread) {
    if (last_cpu_.size() <= thread) last_cpu_.resize(thread + 1, cpus_.size());
    std::size_t& last = last_cpu_[thread];
    const auto fewest = std::min_element(cpus_.begin(), cpus_.end(), fewer_threads);
    const bool stays = last < cpus_.size() &&
                       cpus_[last].threads() <= fewest->threads() + (fewest->threads() > 0 ? 1 : 0);
    if (!stays) last = static_cast<std::size_t>(fewest - cpus_.begin());
    return cpus_[last];
  }

  bool has_time_slices() const noexcept { return one_by_one_ && speed_.turn_ns > 0; }

  static std::vector<event>::iterator first_of(cpu& c) {
    return std::min_element(c.running.begin(), c.running.end());
  }

  void start(cpu& c, double left_ns, std::uint32_t thread) const {
    c.running.emplace_back(c.done_ns + left_ns, thread);
    c.slice_began_ns = now_ns_;
    c.event_ns = c.waiting.empty() ? HUGE_VAL : now_ns_ + speed_.turn_ns;
  }

  /// Returns when the current time slice ends. If no other thread waits, a thread begins a new time
  /// slice whenever the previous one ends.
  double end_of_slice(const cpu& c) const {
    const double slices = std::floor((now_ns_ - c.slice_began_ns) / speed_.turn_ns) + 1;
    return c.slice_began_ns + slices * speed_.turn_ns;
  }

  void start_waiting(cpu& c) {
    const event next = c.waiting.front();
    c.waiting.pop_front();
    if (c.woken > 0) --c.woken;
    start(c, next.first, next.second);
  }

  void end_turn(cpu& c) {
    const event had = c.running.front();
    c.running.clear();
    start_waiting(c);
    c.waiting.emplace_back(had.first - c.done_ns, had.second);
    c.event_ns = now_ns_ + speed_.turn_ns;
  }

  std::uint32_t wake_first() {
    const std::uint32_t thread = sleeping_.top().second;
    sleeping_.pop();
    return thread;
  }

  std::uint32_t end_first(cpu& c) {
    const auto first = first_of(c);
    const std::uint32_t thread = first->second;
    c.done_ns = first->first;
    c.running.erase(first);
    if (!c.waiting.empty()) {
      start_waiting(c);
    } else if (c.running.empty()) {
      --busy_;
      c.event_ns = now_ns_ + 0.5 * speed_.turn_ns;
    }
    new_speeds();
    return thread;
  }

  void take_over(cpu& to) {
    to.event_ns = HUGE_VAL;
    cpu& from = *std::max_element(cpus_.begin(), cpus_.end(), fewer_threads);
    if (from.threads() < 2) return;
    ++busy_;
    if (has_time_slices()) {
      const event last = from.waiting.back();
      from.waiting.pop_back();
      from.woken = std::min(from.woken, from.waiting.size());
      if (from.waiting.empty()) from.event_ns = HUGE_VAL;
      start(to, last.first, last.second);
      last_cpu_[last.second] = static_cast<std::size_t>(&to - cpus_.data());
    } else {
      const event last = from.running.back();
      from.running.pop_back();
      start(to, last.first - from.done_ns, last.second);
    }
    new_speeds();
  }

  void new_speeds() {
    if (!one_by_one_) {
      cpus_.front().rate = speed_.speed(static_cast<double>(cpus_.front().running.size()));
      return;
    }
    const double longer = speed_.longer(static_cast<double>(busy_));
    for (cpu& c : cpus_) {
      c.rate = c.running.empty() ? 0 : 1 / (longer * static_cast<double>(c.running.size()));
    }
  }

  const speed_law& speed_;
  bool one_by_one_;
  std::priority_queue<event, std::vector<event>, std::greater<>> sleeping_;
  std::vector<cpu> cpus_;
  std::vector<std::size_t> last_cpu_;  // for each thread: the CPU to which it went last
  std::size_t busy_ = 0;               // number of CPUs that run a thread
  double now_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CLOCKS_HPP
