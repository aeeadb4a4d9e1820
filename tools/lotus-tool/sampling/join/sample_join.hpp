// Every sample of a real run goes to the operation that was open then.
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
  std::map<std::string, joined_samples> inlined;  ///< of these, by the function inlined there
};

/// What the samples say of one operation, or of what lies outside of any.
struct joined_op {
  joined_samples total;
  std::map<std::string, joined_function> functions;  ///< by function_key()
  std::map<std::string, std::uint64_t> counters;     ///< by event, the sum of its values
  /// How long it was the innermost operation of its threads, as far as these were sampled.
  std::int64_t wall_ns = 0;
  /// Threads of its process that have no scope, while it was that.
  thread_groups meanwhile;
  joined_samples beside;  ///< the same, counted for each of its own threads
};

struct joined_run {
  /// Whose samples are counted: of several, the one that tells time. Empty before the first join().
  std::string event;
  std::map<std::string, joined_op> ops;
  joined_op outside;
  thread_groups outside_threads;  ///< its samples, by thread

  joined_samples total() const noexcept;
};

/// The samples that `map record` left in a run's folder; none: empty. Throws input_error.
located_samples samples_beside(const std::string& dir, diagnostic_log& diagnostics);

/// Adds a run: a sample belongs to the innermost operation of its thread that holds its time. Batch
/// records are no operations. Throws input_error.
void join(const run_files& run, const located_samples& samples, joined_run& to,
          diagnostic_log& diagnostics);

/// CPU time; none where only events were sampled that do not measure time.
std::optional<std::uint64_t> cpu_ns(const joined_samples& samples, const joined_run& run);
inline std::optional<std::uint64_t> cpu_ns(const joined_op& op, const joined_run& run) {
  return cpu_ns(op.total, run);
}

/// Whether an operation ran for less than half of its wall time while threads without a scope ran
/// for at least a quarter of the rest: then its own CPU time does not tell what it costs. That it
/// waits for these threads cannot be known from samples.
bool may_wait_for_others(const joined_op& op, const joined_run& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP
