#include "threads/analysis/sample_times.hpp"

#include <cmath>
#include <cstdint>
#include <map>

#include "base/printable.hpp"

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

namespace {

/// Returns "running", or the word for the reason for which the thread waited.
const char* state_word(const thread_sample& sample) noexcept {
  return sample.waits ? lotus::detail::wait_reason_words[static_cast<std::size_t>(sample.reason)]
                      : "running";
}

/// Returns the text as one element of a line: without control characters, and without ';', which
/// separates the elements.
std::string element(const std::string& text) {
  std::string clean = printable_line(text);
  for (char& c : clean) {
    if (c == ';') c = ':';
  }
  return clean;
}

std::string calls_of(const named_stack& stack) {
  std::string text;
  for (auto call = stack.rbegin(); call != stack.rend(); ++call) {
    text.append(1, ';').append(element(call->function));
  }
  return text;
}

}  // namespace

std::string collapsed_stacks(const thread_samples& samples, const named_stacks& stacks,
                             const std::vector<thread_activity>& groups) {
  std::map<std::string, double> lines;
  for (const timed_sample& one : sample_times(samples, groups)) {
    lines[element(unique_name(groups[one.group])) + ';' + state_word(*one.of) +
          calls_of(stacks.of(one.of->stack))] += 1e6 * one.time_s;
  }
  std::string text;
  for (const auto& [line, us] : lines) {
    if (std::llround(us) > 0) text += line + ' ' + std::to_string(std::llround(us)) + '\n';
  }
  return text;
}

}  // namespace lotus::tool
