// Finds out what the groups of threads of a program do: run, wait for a CPU, or wait for others.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// A reason for which the threads of a group wait, in one function.
struct blocked_part {
  lotus::detail::wait_reason reason = lotus::detail::wait_reason::other;
  std::string what;               ///< path, name of a system call; "" if unknown
  source_place function;          ///< the function in which they wait
  double share = 0;               ///< share of the group's time, 0..1
  std::optional<std::size_t> of;  ///< index of the group that holds the lock or that is waited for
  bool sure = false;              ///< whether `of` was observed; otherwise it is a guess
};

/// A function in which the threads of a group use the CPU.
struct function_share {
  source_place function;  ///< with the line that was sampled most often
  double share = 0;       ///< share of the group's CPU time, 0..1
};

/// Threads of one program that began with the same function.
struct thread_activity {
  /// Name of the function; "main" for the main thread. Of a lambda, such as "a lambda at load.cpp:8
  /// in Loader::Loader".
  std::string start;
  std::string lambda;       ///< such as "a lambda at load.cpp:8"; "" if the function is no lambda
  std::string function;     ///< name of the function; of a lambda, of the one that contains it
  std::string program;      ///< path of the program whose threads they are; "" if unknown
  bool is_main = false;     ///< whether this is the main thread of the started program
  bool is_process = false;  ///< whether these are the main threads of other processes
  /// What tells these threads from those of other programs that began with a function of the same
  /// name: name or path of the program. "" if nothing is needed.
  std::string of_program;
  std::size_t threads = 0;
  std::size_t processes = 0;      ///< the number of processes to which the threads belong
  std::set<std::size_t> members;  ///< indices in thread_samples::threads
  std::uint64_t wait_samples = 0;
  std::uint64_t cpu_samples = 0;
  double time_s = 0;  ///< sum of the threads' times in seconds
  // Shares of this time, 0..1; together with those of `blocked` their sum is 1.
  double running = 0;
  double run_queue = 0;
  std::vector<blocked_part> blocked;      ///< the largest share first
  std::vector<function_share> functions;  ///< the largest share first

  double blocked_share() const;
};

/// Returns the groups: the main thread first, then those with the most running time first. Threads
/// without samples are left out.
std::vector<thread_activity> activity_of(const thread_samples& samples, const named_stacks& stacks);

/// Returns the index of the group that the user asks about: the main thread, or, if it only waits
/// for child processes, as a shell does, the main threads of the processes that ran longest.
std::size_t subject_of(const std::vector<thread_activity>& groups);

/// Returns a text such as "4 threads in `worker_loop`" or "main".
std::string shown_group(const thread_activity& group);

/// Returns a name that no other group has, such as "worker_loop" or "worker_loop of decoder".
std::string unique_name(const thread_activity& group);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_THREAD_ACTIVITY_HPP
