// Assigns every sample of a run to the operation that its thread had open at the sample's time.
#ifndef LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP
#define LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "sampling/read/located_samples.hpp"

namespace lotus::tool {

/// Number and summed value of samples of the event joined_run::event. Shares are computed from
/// values, because sampling rates may differ.
struct joined_samples {
  std::uint64_t samples = 0;
  std::uint64_t value = 0;  ///< sum of the samples' values, in the event's unit: ns, cycles, …

  joined_samples& operator+=(const joined_samples& more) noexcept;
  /// Returns the member `value` of this object as a share (0..1) of the member `value` of `all`.
  double share_of(const joined_samples& all) const noexcept;
};

/// Threads with the same name except for a number at its end, such as those of a thread pool.
struct thread_group {
  bool recorded = false;        ///< whether the threads recorded scopes or batches
  std::set<std::string> names;  ///< names of the threads; "" for an unknown name
  std::set<std::uint32_t> tids{};
  joined_samples total{};

  /// Returns a text such as "av:h264", or "av:h264:df*" if the threads have different names.
  std::string name() const;
};

class thread_groups {
 public:
  void count(std::uint32_t tid, std::string_view name, bool recorded, const joined_samples& more);

  /// Returns the groups, the group with the largest value first.
  std::vector<thread_group> sorted() const;

 private:
  std::map<std::pair<bool, std::string>, thread_group> groups_;
};

struct joined_function {
  joined_samples total;
  std::map<std::string, joined_samples> inlined;  ///< samples in inlined functions, by function
};

/// The samples of one operation, or the samples outside of any operation.
struct joined_op {
  joined_samples total;
  /// Samples by function; the key is function_key().
  std::map<std::string, joined_function> functions;
  std::map<std::string, std::uint64_t> counters;  ///< sum of the values of each event, by event
  /// Time in ns for which the operation was innermost on its threads while samples were taken.
  std::int64_t wall_ns = 0;
  /// Samples of other threads that were taken while the operation ran. These threads belong to the
  /// same process and have no scopes. The operation may have waited for their work.
  thread_groups meanwhile;
  /// The sum of the samples in `meanwhile`. If several threads were in the operation at the time of
  /// a sample, the sample counts once for each of them.
  joined_samples meanwhile_sum;
};

struct joined_run {
  /// The event whose samples are counted: the only sampled event, or the one that measures time.
  /// Empty before the first join().
  std::string event;
  std::map<std::string, joined_op> ops;
  joined_op outside;
  thread_groups outside_threads;  ///< samples of `outside`, by group of threads

  joined_samples total() const noexcept;
};

/// Returns the samples that `map record` stored in a run's folder; empty if there are none. Throws
/// input_error.
located_samples samples_of_run(const std::string& dir, diagnostic_log& diagnostics);

/// Adds the samples of a run to `to`: assigns each sample to the innermost operation that its
/// thread had open at the sample's time. Batch records do not count as operations. Throws
/// input_error.
void join(const run_files& run, const located_samples& samples, joined_run& to,
          diagnostic_log& diagnostics);

/// Returns the CPU time in ns of some samples; nullopt if no sampled event measures time.
std::optional<std::uint64_t> cpu_ns(const joined_samples& samples, const joined_run& run);

/// Whether an operation may wait for the work of threads without scopes, so that its CPU time does
/// not show its full cost. This is assumed if the operation used the CPU for less than half of its
/// wall time, and these threads ran for at least a quarter of the rest. It is no proof that the
/// operation waits.
bool may_wait_for_others(const joined_op& op, const joined_run& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_JOIN_SAMPLE_JOIN_HPP
