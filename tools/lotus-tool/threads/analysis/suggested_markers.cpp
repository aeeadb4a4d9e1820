#include "threads/analysis/suggested_markers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

constexpr std::uint64_t enough_samples = 20;

/// Counts the samples at each place, and finds the most frequent place.
class place_votes {
 public:
  void add(const source_place& place, std::uint64_t count) {
    votes_[place] += count;
    all_ += count;
  }
  void add_without_place(std::uint64_t count) { all_ += count; }

  /// Returns the place of at least `share` of the samples; nullopt if there is none, or if it is
  /// not in a source file of the user.
  std::optional<source_place> winner(double share) const {
    const auto most =
        std::max_element(votes_.begin(), votes_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (all_ < enough_samples || most == votes_.end()) return std::nullopt;
    if (static_cast<double>(most->second) < share * static_cast<double>(all_)) return std::nullopt;
    const source_place& place = most->first;
    const bool is_of_system = place.file.rfind("/usr/", 0) == 0;
    if (place.file.empty() || place.line <= 0 || is_of_system) return std::nullopt;
    return place;
  }

 private:
  std::map<source_place, std::uint64_t> votes_;
  std::uint64_t all_ = 0;
};

/// Returns the call from which the consumer's loop waits: the innermost call outside of the class
/// in whose function the thread waits; that function itself if it has no class.
std::optional<source_place> consumer_call(const named_stack& stack) {
  const std::size_t waits_in = waiting_call(stack);
  if (waits_in >= stack.size() || is_of_runtime(stack[waits_in])) return std::nullopt;
  const std::string scope = class_of(stack[waits_in].function);
  for (std::size_t i = waits_in; i < stack.size(); ++i) {
    if (is_of_runtime(stack[i])) continue;
    if (scope.empty() || class_of(stack[i].function) != scope) return stack[i];
  }
  return std::nullopt;
}

/// Returns the call in the function with which the thread began: the outermost call outside of the
/// C and C++ libraries, if it has called another function of the program.
std::optional<source_place> loop_call(const named_stack& stack) {
  std::optional<std::size_t> loop;
  for (std::size_t i = stack.size(); i-- > 0;) {
    if (is_of_runtime(stack[i])) continue;
    if (loop) return stack[*loop];
    loop = i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<suggested_marker> suggested_markers(const thread_samples& samples,
                                                const named_stacks& stacks,
                                                const std::vector<thread_activity>& groups) {
  constexpr double most = 0.8;
  constexpr double min_wait = 0.1;
  using lotus::detail::wait_reason;
  if (groups.empty()) return {};
  const std::size_t subject = subject_of(groups);
  if (groups[subject].blocked.empty()) return {};
  const blocked_part& wait = groups[subject].blocked.front();
  const bool is_queue = wait.reason == wait_reason::condition && wait.what.empty();
  if (!is_queue || !wait.of || *wait.of == subject || wait.share < min_wait) return {};
  const thread_activity& workers = groups[*wait.of];
  place_votes consumer;
  place_votes worker;
  for (const thread_sample& s : samples.samples) {
    const named_stack& stack = stacks.of(s.stack);
    if (s.waits && groups[subject].members.count(s.thread) != 0) {
      if (s.reason != wait.reason || stack.empty()) continue;
      if (!(stack[waiting_call(stack)] == wait.function)) continue;
      const auto call = consumer_call(stack);
      if (call) consumer.add(*call, s.count);
      if (!call) consumer.add_without_place(s.count);
    } else if (!s.waits && workers.members.count(s.thread) != 0) {
      const auto call = loop_call(stack);
      if (call) worker.add(*call, s.count);
      if (!call) worker.add_without_place(s.count);
    }
  }
  const auto consumed = consumer.winner(most);
  const auto preprocessed = worker.winner(most);
  if (!consumed || !preprocessed) return {};
  return {{*consumed, true, "LOTUS_BATCH_CONSUMED(i);", wait.sure},
          {*preprocessed, false, "LOTUS_BATCH_PREPROCESSED(i);", wait.sure}};
}

}  // namespace lotus::tool
