#include "replay/recorded/busy_cpus.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lotus::tool {

busy_cpus::busy_cpus(const std::vector<cpu_interval>& intervals) {
  std::vector<std::pair<std::int64_t, double>> changes;
  changes.reserve(2 * intervals.size());
  for (const cpu_interval& s : intervals) {
    changes.emplace_back(s.start_ns, s.share);
    changes.emplace_back(s.end_ns, -s.share);
  }
  std::sort(changes.begin(), changes.end());
  for (const auto& [time_ns, change] : changes) {
    if (moments_.empty()) {
      moments_.push_back({time_ns, 0, 0});
    } else if (moments_.back().time_ns < time_ns) {
      const moment& before = moments_.back();
      moments_.push_back(
          {time_ns, before.busy,
           before.sum_ns + before.busy * static_cast<double>(time_ns - before.time_ns)});
    }
    moments_.back().busy += change;
  }
}

double busy_cpus::until(std::int64_t time_ns) const {
  const auto next = std::upper_bound(moments_.begin(), moments_.end(), time_ns,
                                     [](std::int64_t t, const moment& m) { return t < m.time_ns; });
  if (next == moments_.begin()) return 0;
  const moment& m = *(next - 1);
  return m.sum_ns + m.busy * static_cast<double>(time_ns - m.time_ns);
}

double busy_cpus::mean(std::int64_t start_ns, std::int64_t end_ns) const {
  if (end_ns <= start_ns) return 0;
  return (until(end_ns) - until(start_ns)) / static_cast<double>(end_ns - start_ns);
}

}  // namespace lotus::tool
