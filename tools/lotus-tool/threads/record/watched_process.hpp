// Samples the threads of another process: whether they wait, for what, and in which calls.
#ifndef LOTUS_TOOL_THREADS_RECORD_WATCHED_PROCESS_HPP
#define LOTUS_TOOL_THREADS_RECORD_WATCHED_PROCESS_HPP

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <lotus/waits/system_calls.hpp>
#include <lotus/waits/wait_reasons.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "threads/data/thread_samples.hpp"
#include "threads/unwind/stack_copy.hpp"

namespace lotus::tool {

/// Owns a file descriptor, which the destructor closes.
class kept_file {
 public:
  explicit kept_file(int fd = -1) noexcept : fd_(fd) {}
  kept_file(kept_file&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  kept_file& operator=(kept_file&& other) noexcept;
  kept_file(const kept_file&) = delete;
  kept_file& operator=(const kept_file&) = delete;
  ~kept_file();

  int number() const noexcept { return fd_; }

 private:
  int fd_;
};

/// The reason of a thread's wait, and a copy of the thread's stack.
struct seen_wait {
  lotus::detail::wait_reason reason = lotus::detail::wait_reason::other;
  std::uint64_t address = 0;  ///< as thread_sample::address
  std::uint32_t holder = 0;   ///< id of the thread that holds the lock or is waited for
  std::string what;           ///< as thread_sample::what
  std::string several{};      ///< as thread_sample::polled
  /// The things of which the thread waits for one, such as "pipe:[4711]", in poll, select or epoll.
  std::vector<std::string> polled{};
  stack_copy stack;
};

enum class seen_state : std::uint8_t {
  runs,
  waits,
  gone,       ///< the thread has ended
  forbidden,  ///< the kernel does not permit this process to read the state of the thread
};

/// The CPU time of a thread since its start, and its time waiting for a CPU.
struct scheduled_time {
  std::chrono::steady_clock::time_point at;  ///< time of the reading
  std::uint64_t cpu_ns = 0;
  std::uint64_t queue_ns = 0;
  std::uint64_t runs = 0;  ///< how often the scheduler let the thread run
};

class watched_process {
 public:
  explicit watched_process(std::uint32_t pid);

  std::uint32_t pid() const noexcept { return pid_; }

  /// Lists the threads that exist now; empty if the process has ended.
  std::vector<std::uint32_t> threads() const;
  /// Lists the processes that the threads have started.
  std::vector<std::uint32_t> children() const;

  /// Samples whether and for what a thread waits. Sets `wait` if the result is `waits`.
  seen_state sample_wait(std::uint32_t tid, seen_wait& wait);
  /// Returns the times of a thread; zeros if they cannot be read.
  scheduled_time times(std::uint32_t tid) const;
  /// Returns the name of a thread; "" if it has ended.
  std::string name(std::uint32_t tid) const;

  /// Returns which ends of a pipe or socket the process has opened.
  /// @param what  as thread_sample::what.
  open_end end_of(const std::string& what) const;

  /// Returns the path of the program that the process runs; "" if it cannot be read.
  std::string program() const;
  /// Returns the parts of files that the process has mapped as code, sorted by address.
  std::vector<mapped_code> code() const;

  /// Returns the build id of a file that the process has mapped; "" if unknown.
  std::string build_of(const mapped_code& part);

  /// Reads memory of the process; returns the number of bytes that could be read.
  std::size_t read_memory(std::uint64_t address, void* to, std::size_t bytes) const noexcept;
  std::uint32_t word_at(std::uint64_t address) const noexcept;
  bool has_thread(std::uint32_t tid) const noexcept;

 private:
  std::string task_path(std::uint32_t tid, const char* file) const;
  void open_memory();
  int read_call(std::uint32_t tid, std::string& line);
  void describe(const lotus::detail::entered_call& call, seen_wait& to) const;
  std::vector<pollfd> polled(const lotus::detail::entered_call& call, std::string_view name) const;
  std::string opened(int fd) const;

  std::uint32_t pid_;
  kept_file memory_;                          // /proc/PID/mem
  std::map<std::uint32_t, kept_file> calls_;  // the file /proc/PID/task/TID/syscall of some threads
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_WATCHED_PROCESS_HPP
