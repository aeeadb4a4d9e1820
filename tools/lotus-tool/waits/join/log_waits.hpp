// Describes in words what the threads of a run waited for at each sample.
#ifndef LOTUS_TOOL_WAITS_JOIN_LOG_WAITS_HPP
#define LOTUS_TOOL_WAITS_JOIN_LOG_WAITS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// The samples of the waiting threads of a run, by log. Needs none of the run's operations in
/// memory: if samples show locks, it reads the logs of the threads that held them.
class log_waits {
 public:
  /// Creates an object without samples; use read() for a run with samples.
  log_waits() = default;
  /// Throws input_error.
  static log_waits read(const run_data& run, diagnostic_log& diagnostics);

  /// Returns what the thread of a log waited for in an interval, the most frequent first, such as
  /// "waits for the lock decoder_mutex held by Decode (3 samples), sleeps (1 sample)"; "" if no
  /// sample lies in the interval.
  /// @param name  name of the operation that waits, without the S that logs put before it.
  std::string text(std::size_t file, std::int64_t start_ns, std::int64_t end_ns,
                   const std::string& name) const;

  /// Whether a sample of the log's thread lies in an interval.
  bool has(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  struct moment {
    std::int64_t time_ns = 0;
    std::uint32_t entry = 0;  // index in entries_
  };
  /// Returns the first sample of the log that was taken at or after the time `ns`.
  std::vector<moment>::const_iterator first(std::size_t file, std::int64_t ns) const;

  std::vector<blocked_on> entries_;          // everything that a thread waited for, each once
  std::vector<std::vector<moment>> of_log_;  // sorted by time; by the log's index
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_LOG_WAITS_HPP
