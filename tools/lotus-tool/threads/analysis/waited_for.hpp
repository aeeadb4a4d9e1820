// Finds the group of threads for which a waiting thread waits.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_WAITED_FOR_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_WAITED_FOR_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/seen_together.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct group_samples {
  thread_activity of;
  std::uint64_t waits = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t queue_ns = 0;
  std::set<std::uint32_t> processes;
  std::vector<const thread_sample*> running;
  std::vector<const thread_sample*> waiting;
};

/// Finds the group for which a thread waits. For a lock, this is the group of the lock's holder;
/// for a pipe or socket, that of the process with its other end. For a condition, it is a group
/// that waits elsewhere in the same object, such as at the other end of a queue, or that calls
/// functions of the object's class (Queue<int>, not Queue<float>), or the only group that works
/// meanwhile. The addresses at which threads wait distinguish two objects of the same class.
class waited_for {
 public:
  /// @param groups  with their times and states. All arguments must outlive this object.
  waited_for(const thread_samples& samples, const named_stacks& stacks,
             const std::vector<group_samples>& groups, const seen_together& together);

  struct target {
    std::size_t group = 0;
    bool sure = false;     ///< whether it was seen that the thread waits for this group
    const char* why = "";  ///< the reason why it is probable; "" if it is sure

    friend bool operator<(const target& a, const target& b) {
      return std::tie(a.group, a.sure, a.why) < std::tie(b.group, b.sure, b.why);
    }
  };

  /// Returns the group for which a thread of `own_group` waits; nullopt if it is unclear.
  std::optional<target> of(const thread_sample& s, std::size_t own_group) const;

 private:
  enum class evidence : std::uint8_t { none, weak, sure };

  /// A function in which threads wait.
  struct waiting_function {
    std::string name;
    std::string module;
    std::string scope;      ///< class or namespace; "" if there is none
    bool in_class = false;  ///< whether the scope is known to be a class
  };
  /// The waits of a group in one process at one address, in one function.
  struct object_wait {
    std::uint32_t pid = 0;
    std::uint64_t address = 0;
    std::size_t function = 0;  // index in functions_
    bool for_condition = false;

    friend bool operator<(const object_wait& a, const object_wait& b) {
      return std::tie(a.pid, a.address, a.function, a.for_condition) <
             std::tie(b.pid, b.address, b.function, b.for_condition);
    }
  };
  struct group_calls {
    std::set<object_wait> waits;
    /// The functions that the group calls, by class and module. Functions that wait at a known
    /// address are left out.
    std::map<std::pair<std::string, std::string>, std::set<std::string>> classes;
  };

  void add_calls(const group_samples& group);
  std::size_t function_of(std::uint32_t stack);
  std::uint32_t pid_of(const thread_sample& s) const { return samples_.threads[s.thread].pid; }
  object_wait wait_of(const thread_sample& s) const;

  evidence at_same_object(const object_wait& own, const object_wait& other) const;
  bool several_objects(const object_wait& own) const;
  evidence in_same_class(const object_wait& own, std::size_t group, bool several) const;
  std::vector<double> working_during(const object_wait& own, std::size_t own_group) const;
  std::optional<target> user_of_object(const object_wait& own, std::size_t own_group,
                                       const std::vector<double>& working) const;
  std::optional<target> user_of_channel(const thread_sample& s, std::size_t own_group) const;
  std::optional<target> only_process(std::size_t own_group) const;

  const thread_samples& samples_;
  const named_stacks& stacks_;
  const std::vector<group_samples>& groups_;
  const seen_together& together_;
  std::map<std::uint32_t, std::size_t> group_of_tid_;
  std::vector<waiting_function> functions_;
  std::map<std::pair<std::string, std::string>, std::size_t> known_functions_;
  std::map<std::uint32_t, std::size_t> function_of_stack_;
  std::vector<group_calls> calls_;  // for each group
  using wait_key = std::tuple<std::size_t, std::uint32_t, std::uint64_t, std::size_t>;
  mutable std::map<wait_key, std::vector<double>> working_;  // results of working_during()
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_WAITED_FOR_HPP
