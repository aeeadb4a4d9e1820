// Computes for each group of a program's threads for how much of its time it ran, waited for a CPU
// or was blocked, and in which functions.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// The waits of a group's threads that have the same reason and are in the same function.
struct blocked_part {
  lotus::detail::wait_reason reason = lotus::detail::wait_reason::other;
  std::string what;               ///< path of a file or name of a system call; "" if unknown
  source_place function;          ///< the function in which the threads wait
  double share = 0;               ///< share of the group's time, 0..1
  std::optional<std::size_t> of;  ///< index of the group that holds the lock or that is waited for
  bool sure = false;              ///< whether `of` was observed; otherwise it is probable
  const char* why = "";           ///< the reason why `of` is probable; "" if it is sure
  bool outside = false;           ///< whether the wait is for somebody outside of the program
  std::uint64_t descriptor = 0;   ///< if it waits for a pipe: thread_sample::address
  bool for_several = false;       ///< whether it is for one of several things, which `what` names
  bool for_thread_end = false;    ///< whether it is for the end of a thread
  std::set<std::size_t> samples;  ///< indices in thread_samples::samples
};

/// A function in which the threads of a group use the CPU, with its share of their CPU time.
struct function_share {
  source_place function;  ///< the function, with the line that was sampled most often
  double share = 0;       ///< share of the group's CPU time, 0..1
};

/// A group: the threads of one program that began with the same function.
struct thread_activity {
  /// Name of the group: the name of the function, "main" for the main thread, or a text such as "a
  /// lambda at load.cpp:8 in Loader::Loader".
  std::string start;
  std::string lambda;  ///< such as "a lambda at load.cpp:8"; "" if the function is no lambda
  /// Name of the function; for a lambda, of the function that contains it; for processes, their
  /// name.
  std::string function;
  std::string program;      ///< path of the threads' program; "" if unknown
  bool is_main = false;     ///< whether this is the main thread of the started program
  bool is_process = false;  ///< whether these are the main threads of other processes
  /// Name or path of the program, if the group's name needs it: another program may have threads
  /// that began with a function of the same name. Otherwise "".
  std::string of_program;
  std::size_t threads = 0;
  std::size_t processes = 0;      ///< the number of processes to which the threads belong
  std::set<std::size_t> members;  ///< indices in thread_samples::threads
  std::uint64_t wait_samples = 0;
  std::uint64_t cpu_samples = 0;
  double time_s = 0;          ///< sum of the threads' lifetimes in seconds
  double cpu_s = 0;           ///< sum of the threads' CPU times in seconds
  std::size_t at_once = 0;    ///< largest number of the threads that existed at the same time
  std::size_t unsampled = 0;  ///< number of the threads that were too short-lived to be sampled
  // `running`, `run_queue` and the elements of `blocked` contain shares of `time_s` (0..1), which
  // add up to 1.
  double running = 0;
  double run_queue = 0;
  std::vector<blocked_part> blocked;      ///< the largest share first
  std::vector<function_share> functions;  ///< the largest share first

  double blocked_share() const;
  /// Whether enough of the threads were sampled to know what they all do.
  bool is_sampled() const;
};

/// Returns the groups: the main thread first, then those with the most running time first. A thread
/// without samples belongs to the group of the other threads that its starter's group started.
std::vector<thread_activity> activity_of(const thread_samples& samples, const named_stacks& stacks);

/// Returns the index of each thread's group; seen_together::no_group for threads without a group.
std::vector<std::size_t> groups_of_threads(const thread_samples& samples,
                                           const std::vector<thread_activity>& groups);

/// Returns the index of the group that interests the user: the main thread. If the main thread only
/// waits for child processes, as that of a shell does, the result is the group of main threads of
/// other processes that ran longest.
std::size_t subject_of(const std::vector<thread_activity>& groups);

/// Returns a text such as "4 threads in `worker_loop`" or "main thread".
std::string shown_group(const thread_activity& group);

/// Returns a name that no other group has, such as "worker_loop" or "worker_loop of decoder".
std::string unique_name(const thread_activity& group);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP
