// Finds out from the rounds of samples, which show the states of several threads at one moment, who
// works while a thread waits.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_SEEN_TOGETHER_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_SEEN_TOGETHER_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Returns the only group that worked during nearly all of some waits; nullopt if there is none, or
/// if another group worked during many of them too.
/// @param working  result of seen_together::working_during().
std::optional<std::size_t> only_worker_of(const std::vector<double>& working);

/// Whether a wait is for a pipe or socket, which has two ends.
bool is_channel(lotus::detail::wait_reason reason);

/// Whether a wait is for a pipe, socket or terminal whose other end no recorded process has opened:
/// for input from outside, or for somebody outside who reads the output.
bool is_outside(const thread_samples& samples, const thread_sample& wait);

/// Returns the processes that have opened the other end of the pipe or socket for which a thread
/// waits. The thread's own process is among them only if it is the only one.
std::set<std::uint32_t> at_other_end(const thread_samples& samples, const thread_sample& wait);

class seen_together {
 public:
  static constexpr std::size_t no_group = SIZE_MAX;

  /// @param group_of  index of the group of each thread, or no_group. Both must outlive this
  /// object.
  seen_together(const thread_samples& samples, const std::vector<std::size_t>& group_of,
                std::size_t groups);

  /// Returns for each group during which share of some waits one of its threads worked, other than
  /// the waiting one. A thread works that uses a CPU, waits for a CPU, for the disk or for
  /// something outside. Empty if the waits were seen too seldom.
  /// @param wanted  whether these are the waits, by the index of a sample.
  std::vector<double> working_during(const std::function<bool(std::size_t)>& wanted) const;

  /// Whether a thread in this state works.
  bool works(const sampled_round::state& state) const;

 private:
  const thread_samples& samples_;
  const std::vector<std::size_t>& group_of_;
  std::size_t groups_;
  std::vector<bool> outside_;                       // for each sample
  std::vector<std::vector<std::uint64_t>> starts_;  // of each group's threads, in ms, sorted
  std::vector<std::vector<std::uint64_t>> ends_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_SEEN_TOGETHER_HPP
