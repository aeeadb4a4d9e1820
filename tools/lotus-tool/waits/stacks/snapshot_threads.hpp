// Shows what all threads of a run's processes did when one of them took a snapshot, such as one
// because of a hang.
#ifndef LOTUS_TOOL_WAITS_STACKS_SNAPSHOT_THREADS_HPP
#define LOTUS_TOOL_WAITS_STACKS_SNAPSHOT_THREADS_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "describe/described.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// What a thread did when a snapshot was taken.
struct snapshot_thread {
  std::uint64_t pid = 0;          ///< its process; 0: unknown
  bool in_other_process = false;  ///< whether another process took the snapshot
  std::uint64_t tid = 0;
  std::string name;
  bool waits = false;  ///< otherwise the thread was running
  wait_reason reason = wait_reason::other;
  wait_object what{};
  std::uint64_t holder = 0;        ///< id of the thread that held the lock; 0: unknown
  std::int64_t batch_wait_ns = 0;  ///< for how long it had waited for a batch; 0: it did not
  std::string last;                ///< name of the last recorded operation, without S; "": none
  std::int64_t since_last_ns = 0;  ///< how long before the snapshot that operation ended
  std::vector<std::string> calls;  ///< open calls, the innermost first; empty if unknown
};

/// Returns the threads of the process that took the snapshot, and of the processes that it asked to
/// record their threads too. Empty if the run is no snapshot. Throws input_error.
/// @param run  read with run_parts::operations.
std::vector<snapshot_thread> threads_at_snapshot(const run_data& run, diagnostic_log& diagnostics);

/// Prints a few lines for each thread, the threads that wait for a batch or a lock first.
void print_snapshot_threads(const std::vector<snapshot_thread>& threads, std::ostream& out);

const description<snapshot_thread>& description_of(const snapshot_thread*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_STACKS_SNAPSHOT_THREADS_HPP
