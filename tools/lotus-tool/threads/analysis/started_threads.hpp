// Groups the threads of a program by the function with which they began.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_STARTED_THREADS_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_STARTED_THREADS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Returns the element with the largest count.
template <class Counts>
typename Counts::const_iterator most_frequent(const Counts& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// The properties by which threads are grouped; all threads of a group have the same key.
struct group_key {
  int kind = 0;  ///< 0: the main thread, 1: main threads of other processes, 2: other threads
  std::string program;  ///< path; "" if unknown
  /// thread_start::symbol, or the thread's name if that is unknown, or if it is a main thread of
  /// another process
  std::string start;

  friend bool operator<(const group_key& a, const group_key& b) {
    return std::tie(a.kind, a.program, a.start) < std::tie(b.kind, b.program, b.start);
  }
};

class started_threads {
 public:
  started_threads(const thread_samples& samples, const named_stacks& stacks);

  /// Returns whether there are samples or times of a thread.
  bool is_seen(std::size_t thread) const { return seen_[thread]; }
  /// Returns whether it is known how a thread began, or whether it has a name of its own.
  bool is_named(std::size_t thread) const {
    const sampled_thread& t = samples_.threads[thread];
    return has_start_[thread] || t.pid == t.tid || t.name != samples_.threads.front().name;
  }
  const group_key& key(std::size_t thread) const { return key_[thread]; }
  /// Returns the function with which the threads of a group began. For a lambda, the result has the
  /// line that occurs in most samples.
  thread_start start(const group_key& key) const;

 private:
  struct lines_of_start {
    thread_start start;
    std::map<std::pair<std::string, int>, std::uint64_t> lines;
  };
  using counts = std::map<std::string, std::uint64_t>;

  group_key key_of(std::size_t thread, const counts& starts) const;
  void look_into_wrappers(const named_stacks& stacks, std::vector<counts>& starts);
  void join_first_threads(const named_stacks& stacks, std::vector<counts>& starts);

  const thread_samples& samples_;
  std::vector<bool> seen_;
  std::vector<bool> has_start_;
  std::vector<group_key> key_;
  std::map<std::string, lines_of_start> starts_;  // the key is thread_start::symbol
  std::map<std::uint32_t, std::string> program_;  // path of each process's program, by pid
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_STARTED_THREADS_HPP
