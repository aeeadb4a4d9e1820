// Finds the critical path of a run.
#ifndef LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP
#define LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/identifiers.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

enum class path_kind : std::uint8_t {
  operation,   ///< time inside a LOTUS_SCOPE while a worker builds a batch
  stage,       ///< time in a stage, outside the operations in it
  step,        ///< the consumer's work on a batch
  delivery,    ///< time for passing data from one thread to the next
  prefetch,    ///< time in which a worker waited because no more batches were allowed in flight
  start_up,    ///< time before the work on the first batch began
  unrecorded,  ///< time of a worker outside all operations and stages, also between batches
};

/// Returns the name of a kind of activity for outputs that programs read, such as "operation" or
/// "hand-over".
std::string_view path_kind_name(path_kind kind) noexcept;

/// Returns the title under which outputs for people show an activity on the critical path, such as
/// "Decode", "stage Decode" or "the consumer's steps".
/// @param name  name of an operation or stage, without the S that begins it in logs; not used for
///   other kinds.
std::string path_title(path_kind kind, std::string_view name);

/// How much of the critical path consists of one activity, such as one operation.
struct path_share {
  path_kind kind = path_kind::unrecorded;
  /// Name of the operation or stage, without the S that begins it in logs; "" for other kinds.
  std::string name;
  std::int64_t ns = 0;
  /// How the time `ns` divides into running, waiting for a CPU and being blocked; nullopt if this
  /// is unknown, or if no thread worked in this time.
  std::optional<cpu_split> cpu;
  /// Start of the longest uninterrupted interval of this activity, in ns after run_data::first_ns.
  std::int64_t longest_at_ns = 0;
  std::int64_t longest_ns = 0;
  optional_file longest_file;  ///< log of the thread that worked in that interval, if any
};

/// An interval of the critical path: the work of one thread, or the time between the work of two
/// threads.
struct path_segment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// The kind of activity in this interval. Here, path_kind::operation stands for all
  /// preprocessing, not for a single operation.
  path_kind kind = path_kind::unrecorded;
  optional_file file;  ///< log of the thread that worked, if any
};

/// An interval of the critical path with one activity, such as one operation.
struct path_activity {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::uint32_t> name;  ///< for operations and stages: index in run_data::names
  path_kind kind = path_kind::unrecorded;
  optional_file file;  ///< log of the thread; nullopt if no thread worked
};

/// How much of the critical path consists of the preprocessing of one batch.
struct preprocessing_on_path {
  optional_batch batch;  ///< the batch; nullopt for an item that became part of no batch
  std::int64_t ns = 0;
};

struct critical_path {
  /// Sum of the lengths of all epochs, each from its first work to its last reception of a batch.
  std::int64_t run_ns = 0;
  /// Shares of all activities, largest first; their sum is run_ns. Empty if `misses` is not.
  std::vector<path_share> shares;
  std::vector<preprocessing_on_path> made;  ///< preprocessings on the path; a batch may occur twice
  std::vector<path_segment> segments;       ///< segments of the path, in order of time
  /// Name of a stage that worked for at least 90 % of run_ns, but had less than 5 % of the path:
  /// then the records do not show who waited for whom, and the path is left out. Else "".
  std::string misses;
};

/// Finds the critical path by walking each epoch backwards from the moment when its last batch was
/// received. If the consumer waited for that batch, and the batch was not ready when the wait
/// began, the walk continues in the preprocessing of the batch. Otherwise it continues at the
/// moment when the previous batch was received, and the time in between is the consumer's step. In
/// a preprocessing span, the walk goes back to the start of the span, through the spans of other
/// threads for which its thread waited there (awaited_spans), and continues at the event
/// just before the start, or recorded just after it, that let the span begin. This is one of:
/// - the end of the thread's previous span; for a thread's first one, of a span of the same stage
/// - the end of the batch's previous stage
/// - if the output queue was full: the start of the next stage's span that took an item out of it
/// - if the number of batches in flight is limited: the moment when a batch was received
/// - if the number of items in the next stage and its queue is limited: the end of one of its spans
/// - if the item had been ready long before: the end of another span of the previous stage, which
///   handed over several items together
/// If there was no earlier event, the rest is start-up. Every nanosecond belongs to exactly one
/// activity.
/// @param run         a run with only one consumer that was read with run_parts::operations.
/// @param activities  receives the activities of the path, in unspecified order; may be nullptr.
critical_path find_critical_path(const run_data& run,
                                 std::vector<path_activity>* activities = nullptr);

/// Returns the name of a stage that worked nearly always and is nearly missing in the path; "" if
/// there is none. What worked all the time cannot be absent from it, unless another stage that
/// worked as much is in its place.
std::string missing_stage(const run_data& run, const critical_path& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_CRITICAL_PATH_HPP
