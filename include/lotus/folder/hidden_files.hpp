// Defines the names of the hidden files in a run's directory.
#ifndef LOTUS_FOLDER_HIDDEN_FILES_HPP
#define LOTUS_FOLDER_HIDDEN_FILES_HPP

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Beginning of the name of a thread's side log, which holds the records that the text format
/// cannot express, or of its compact log, which holds all its records (format/compact_layout.hpp).
/// folder/log_parts.hpp defines the rest of the name.
inline constexpr char compact_log_start[] = ".lotus_compact_";
inline constexpr char side_log_start[] = ".lotus_beside_";

/// Beginning of the name of a process's file of aggregates (aggregates/aggregate_text.hpp). The
/// logs' prefix, `_` and the process id follow.
inline constexpr char aggregates_file_start[] = ".lotus_aggregated_";

// The names of the files below begin with these texts; a process's id and a time follow.

/// A process's ring file (record/ring_layout.hpp), which exists until all its records are in the
/// logs.
inline constexpr char ring_file_start[] = ".lotus_ring_";
/// A ring file that is being created.
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";
/// The information file (store/run/run_info.hpp), which describes a process and its threads.
inline constexpr char run_info_start[] = ".lotus_info_";
/// The file of samples of the built-in sampler (sampling/sample_layout.hpp).
inline constexpr char samples_file_start[] = ".lotus_samples_";
/// The file of wait samples (waits/wait_reasons.hpp), which show what threads waited for. The rest
/// of its name is the same as in the name of the process's information file.
inline constexpr char waits_file_start[] = ".lotus_waits_";
/// The file of stacks (waits/stack_words.hpp), which records in which calls threads waited. Its
/// name ends like that of the process's information file.
inline constexpr char stacks_file_start[] = ".lotus_stacks_";

/// A file that asks a process of the run to take a snapshot; it contains the reason.
inline constexpr char snapshot_request_name[] = ".lotus_snapshot_request";

/// A file with which a process that takes a snapshot asks the other processes of the run to record
/// what their threads do (waits/store/moment_requests.hpp).
inline constexpr char moment_request_name[] = ".lotus_moment_request";

/// Stands before the operation's name in a callgrind dump of only the first part of a pass (an
/// execution of a LOTUS_MAP_REGION), which callgrind writes when a nested region begins. A later
/// dump contains the rest of the pass.
inline constexpr char callgrind_part_start[] = "lotus part of ";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_HIDDEN_FILES_HPP
