// Samples the stacks of another process's threads while they use the CPU.
#ifndef LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP
#define LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <lotus/sampling/perf_ring.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "threads/unwind/stack_copy.hpp"

namespace lotus::tool {

/// When sampling begins.
enum class sampling_start : std::uint8_t {
  at_exec,  ///< when the process, which still has only one thread, calls exec
  now,
};

/// Samples with perf_event_open(2). All threads and processes that the sampled threads start later
/// inherit its events, so they are sampled too.
class cpu_sampler {
 public:
  struct listener {
    /// Called for each sample. If it returns true, `stack` is called with the stack of the sample.
    /// All times are in ns of CLOCK_MONOTONIC.
    std::function<bool(std::uint32_t pid, std::uint32_t tid, std::uint64_t at_ns)> sample;
    std::function<void(stack_copy)> stack;
    /// Called for each new process.
    std::function<void(std::uint32_t pid, std::uint32_t parent)> process;
    /// Called when a thread, also the first one of a process, starts or ends.
    /// @param parent  id of the thread that started it.
    std::function<void(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent,
                       std::uint64_t at_ns, bool ends)>
        thread;
    /// Called when a process maps code, because its mappings must then be read again.
    std::function<void(std::uint32_t pid)> mapping;
  };

  /// Samples threads and everything that they start. If the kernel does not permit sampling,
  /// works() is false.
  cpu_sampler(const std::vector<pid_t>& threads, std::uint64_t interval_ns, sampling_start start);
  cpu_sampler(const cpu_sampler&) = delete;
  cpu_sampler& operator=(const cpu_sampler&) = delete;
  ~cpu_sampler();

  bool works() const noexcept { return !rings_.empty(); }
  /// Returns the error of perf_event_open(2), as an errno; 0 if sampling works.
  int error() const noexcept { return works() ? 0 : error_; }
  /// Returns how many of the threads passed to the constructor are not sampled although sampling
  /// works. Each thread needs one file descriptor per processor, and the number of descriptors of a
  /// process is limited.
  std::size_t left_out() const noexcept { return works() ? left_out_ : 0; }

  /// Changes the CPU time between samples. Call it often with random values: with a constant
  /// interval, a loop whose iterations take as long as the interval would always be sampled at the
  /// same place. Each call changes at most `changed_at_once` events.
  void change_interval(std::uint64_t interval_ns) noexcept;

  /// Reads the records that the kernel has stored since the previous call, and calls the functions
  /// in `to` for them.
  void drain(const listener& to);

 private:
  int open_on(int cpu, pid_t thread, perf_event_attr& attr);
  static void take(std::string_view records, const listener& to);

  static constexpr std::size_t changed_at_once = 64;

  int error_ = 0;
  std::size_t left_out_ = 0;
  std::size_t next_change_ = 0;  // index in events_
  std::vector<int> events_;
  std::vector<lotus::detail::perf_ring> rings_;
  std::map<int, int> event_of_cpu_;  // for each processor: the event whose ring all its events use
  std::string bytes_;                // buffer for the records of one ring
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_CPU_SAMPLER_HPP
