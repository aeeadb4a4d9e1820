#include "threads/analysis/sample_times.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

std::vector<timed_sample> sample_times(const thread_samples& samples,
                                       const std::vector<thread_activity>& groups) {
  std::vector<timed_sample> all;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const thread_activity& group = groups[i];
    std::uint64_t waits = 0;
    for (const thread_sample& s : samples.samples) {
      if (s.waits && group.members.count(s.thread) != 0) waits += s.count;
    }
    for (const thread_sample& s : samples.samples) {
      if (group.members.count(s.thread) == 0) continue;
      const std::uint64_t sum = s.waits ? waits : group.cpu_samples;
      const double share = s.waits ? group.blocked_share() : group.running;
      all.push_back(
          {i, &s, group.time_s * share * static_cast<double>(s.count) / static_cast<double>(sum)});
    }
  }
  return all;
}

const char* state_word(const thread_sample& sample) noexcept {
  return sample.waits ? lotus::detail::wait_reason_words[static_cast<std::size_t>(sample.reason)]
                      : "running";
}

}  // namespace lotus::tool
