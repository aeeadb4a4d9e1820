// Names of the hidden files in a run's directory.
#ifndef LOTUS_FOLDER_HIDDEN_FILES_HPP
#define LOTUS_FOLDER_HIDDEN_FILES_HPP

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread's side log, with the lines that its other logs cannot hold, or the compact log that
/// holds all its records (format/compact_layout.hpp). Both names continue like those of other logs:
/// log_parts.hpp.
inline constexpr char compact_log_start[] = ".lotus_compact_";
inline constexpr char beside_log_start[] = ".lotus_beside_";

/// Aggregates that a process counted instead of recording single calls:
/// aggregates/aggregate_text.hpp. The name continues with the logs' prefix, `_` and the
/// process id.
inline constexpr char aggregates_file_start[] = ".lotus_aggregated_";

// Each name below continues with a process id and a time, so that each file belongs to one process.

/// The rings of a process, until all their records are in the logs: record/ring_layout.hpp.
inline constexpr char ring_file_start[] = ".lotus_ring_";
/// A ring file that is being created.
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";
/// The information file, in which a process describes itself: store/run/run_info.hpp.
inline constexpr char run_info_start[] = ".lotus_info_";
/// The samples of a sampler: sampling/sample_layout.hpp.
inline constexpr char samples_file_start[] = ".lotus_samples_";

/// A request to a process of the run to make a snapshot; the file contains the reason.
inline constexpr char snapshot_request_name[] = ".lotus_snapshot_request";

/// Precedes the operation's name in a callgrind dump if more dumps of the same run follow.
inline constexpr char callgrind_part_start[] = "lotus part of ";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_HIDDEN_FILES_HPP
