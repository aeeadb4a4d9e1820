// Samples where the threads of another process use the CPU, with copies of their stacks.
#ifndef LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP
#define LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <lotus/sampling/perf_ring.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "threads/unwind/stack_copy.hpp"

namespace lotus::tool {

/// Uses events of perf_event_open(2), which the kernel enables when the process calls exec, and
/// which its threads and descendants inherit.
class cpu_sampler {
 public:
  struct listener {
    /// Called for each sample. Returns whether the stack is wanted; if so, it is passed to `stack`.
    std::function<bool(std::uint32_t pid, std::uint32_t tid)> sample;
    std::function<void(stack_copy)> stack;
    std::function<void(std::uint32_t pid, std::uint32_t parent)> process;  ///< a new process
    /// Called when a process maps code, because its mappings must then be read again.
    std::function<void(std::uint32_t pid)> mapping;
  };

  /// Prepares sampling of a process that is about to exec. If the kernel does not permit sampling,
  /// works() is false.
  cpu_sampler(pid_t process, std::uint64_t interval_ns);
  cpu_sampler(const cpu_sampler&) = delete;
  cpu_sampler& operator=(const cpu_sampler&) = delete;
  ~cpu_sampler();

  bool works() const noexcept { return !rings_.empty(); }
  /// The error of perf_event_open(2); 0 if sampling works.
  int error() const noexcept { return works() ? 0 : error_; }

  /// Passes all records since the last call to `to`.
  void drain(const listener& to);

 private:
  static void take(std::string_view records, const listener& to);

  int error_ = 0;
  std::vector<int> events_;
  std::vector<lotus::detail::perf_ring> rings_;
  std::string bytes_;  // buffer for the records of one ring
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP
