// Assigns every sample of a real run to the operation that was open at its time.
#ifndef LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP
#define LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "sampling/join/thread_groups.hpp"
#include "sampling/read/located_samples.hpp"

namespace lotus::tool {

struct joined_function {
  joined_samples total;
  std::map<std::string, joined_samples> inlined;  ///< the part of it in inlined functions
};

/// The samples of one operation, or those outside of any operation.
struct joined_op {
  joined_samples total;
  std::map<std::string, joined_function> functions;  ///< the key is function_key()
  std::map<std::string, std::uint64_t> counters;     ///< sum of the values of each event
  /// How long it was the innermost operation of its threads, while these threads were sampled.
  std::int64_t wall_ns = 0;
  /// Samples, taken while the operation ran, of threads of its process that have no scopes.
  thread_groups meanwhile;
  joined_samples meanwhile_sum;  ///< of `meanwhile`: each sample once per thread of this operation
};

struct joined_run {
  /// The event whose samples are counted; if there are several, the one that measures time. Empty
  /// before the first join().
  std::string event;
  std::map<std::string, joined_op> ops;
  joined_op outside;
  thread_groups outside_threads;  ///< the samples of `outside`, by thread

  joined_samples total() const noexcept;
};

/// Returns the samples that `map record` stored in a run's folder; empty if there are none. Throws
/// input_error.
located_samples samples_beside(const std::string& dir, diagnostic_log& diagnostics);

/// Adds a run: a sample belongs to the innermost operation of its thread that was open at its time.
/// Batch records do not count as operations. Throws input_error.
void join(const run_files& run, const located_samples& samples, joined_run& to,
          diagnostic_log& diagnostics);

/// The CPU time; nullopt if no sampled event measures time.
std::optional<std::uint64_t> cpu_ns(const joined_samples& samples, const joined_run& run);
inline std::optional<std::uint64_t> cpu_ns(const joined_op& op, const joined_run& run) {
  return cpu_ns(op.total, run);
}

/// Whether an operation used the CPU for less than half of its wall time while threads without
/// scopes ran for at least a quarter of the rest. Then its own CPU time may not show its full cost;
/// samples cannot prove that it waits for these threads.
bool may_wait_for_others(const joined_op& op, const joined_run& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP
