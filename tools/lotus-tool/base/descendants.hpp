// Finds and ends the processes that this process has started, directly or indirectly.
#ifndef LOTUS_TOOL_BASE_DESCENDANTS_HPP
#define LOTUS_TOOL_BASE_DESCENDANTS_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// The resources that the descendants use at one moment.
struct descendants_use {
  std::size_t processes = 0;
  /// Memory in use; memory that several processes share counts once.
  std::uint64_t bytes = 0;
  /// Sum over all threads that are still running: how long the thread has waited for a CPU since it
  /// began.
  double waited_s = 0;
  bool stopped = false;  ///< whether a process is stopped, for example because it wants a terminal
};

/// All processes that this process has started, directly or indirectly, since the object was
/// created, whatever their process groups and sessions. This includes processes whose parent has
/// ended, because the kernel then makes this process their parent. Only one object of this class
/// may exist at a time.
class descendants {
 public:
  descendants();
  descendants(const descendants&) = delete;
  descendants& operator=(const descendants&) = delete;
  /// Calls end().
  ~descendants();

  descendants_use use() const;
  /// Kills all descendants and waits until none is left, for at most 5 s. Returns how many
  /// descendants it found running. It also reaps (waitpid()) all child processes of this process.
  /// If the caller needs the exit status of a child, it must first call waitpid() for that child.
  /// @param left  receives the number of processes that could not be ended.
  std::size_t end(std::size_t& left);

 private:
  struct process {
    pid_t id = 0;
    pid_t parent = 0;
    char state = '?';
  };
  std::vector<process> all() const;

  std::vector<pid_t> others_;  // children of this process that existed before this object
  bool was_reaper_ = false;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_DESCENDANTS_HPP
