// What the files are called that lie beside the logs.
#ifndef LOTUS_FOLDER_HIDDEN_FILES_HPP
#define LOTUS_FOLDER_HIDDEN_FILES_HPP

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread's log of what the others cannot hold; the name goes on as theirs: log_appender.hpp.
/// All of a thread in blocks: recovery/compact_layout.hpp. Named as that.
inline constexpr char compact_log_start[] = ".lotus_compact_";
inline constexpr char beside_log_start[] = ".lotus_beside_";

/// What a process counted instead of recording it: recovery/aggregates/aggregate_text.hpp. The name
/// goes on with the logs' prefix, `_` and the process id.
inline constexpr char aggregates_file_start[] = ".lotus_aggregated_";

// Each name below goes on with a process id and a time, and is so the file of one process.

/// Rings of a process, until all of their records stand in the logs: record/ring_layout.hpp.
inline constexpr char ring_file_start[] = ".lotus_ring_";
/// A ring file that is being made.
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";
/// What a process tells of itself: store/run/run_info.hpp.
inline constexpr char run_info_start[] = ".lotus_info_";
/// What a sampler saw: recovery/sample_layout.hpp.
inline constexpr char samples_file_start[] = ".lotus_samples_";

/// Asks a process of the run for a snapshot; holds the reason.
inline constexpr char snapshot_request_name[] = ".lotus_snapshot_request";

/// Stands before the operation's name in a dump of callgrind that is followed by more of the same
/// run.
inline constexpr char callgrind_part_start[] = "lotus part of ";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_HIDDEN_FILES_HPP
