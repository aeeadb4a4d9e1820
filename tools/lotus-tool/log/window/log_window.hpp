// Reads a part of a long run, selected by time, without reading the whole run.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/window/time_window.hpp"
#include "log/window/wanted_part.hpp"

namespace lotus::tool {

struct line_times {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Whether the line has an end time. Lines of a log are sorted by end time, so a line that has
  /// only a start time (`false`) cannot be used for a binary search.
  bool in_order = true;
  /// Whether the line's times count when the start and end of the run are determined; false for
  /// lines about time off the CPU.
  bool of_run = true;
};

/// Returns the times of a line, given without line end; nullopt if the line is not a record.
/// @param is_side  whether the line is from a side log.
std::optional<line_times> times_of_line(std::string_view line, bool is_side);

/// Returns a summary of the times in `lines`, which must be complete lines of a text log.
/// @param is_side  whether the lines are from a side log.
seen_times look_at_lines(std::string_view lines, bool is_side);

/// Returns an object that maps times to positions in a text log. Throws input_error if the file
/// cannot be opened.
std::unique_ptr<log_times> times_of_text(const log_file& file);

/// A run whose logs together are smaller than this is read completely.
inline constexpr std::uint64_t narrowed_from_bytes = std::uint64_t{16} << 20U;

/// Reduces a run's logs to the bytes that may belong to the wanted part, and sets
/// run_files::window. Small runs stay unchanged, and so do runs of which a part is wanted that
/// begins or ends with a batch, because batches can be counted only from the run's beginning.
/// Prints a note about spans that may be left out. Throws input_error.
///
/// Logs are sorted by end time, except for records whose times the program supplied. The part is
/// therefore found by binary search in text logs, and with the block headers in compact logs.
/// "Disorder" is the maximum time by which a record ends earlier than a record before it; processes
/// report it, or samples of the logs show it.
///
/// A margin before and after the part is read too, for batches and spans that begin before the part
/// or end after it. The margin is at least a minute, twice the longest span and twice the disorder,
/// but at most 4 MiB of each log on either side. Finally, the range is extended by the disorder.
/// @param from_bytes  minimum size in bytes of a run that is reduced.
void narrow(run_files& run, const wanted_part& wanted, diagnostic_log& diagnostics,
            std::uint64_t from_bytes = narrowed_from_bytes);

/// Reduces the logs of runs that are being recorded to the bytes with the records that ended at
/// `begin_ns` or later, and sets run_files::window. Older parts of logs are read only if their logs
/// are read from the beginning. Throws input_error.
/// @param max_log_bytes  maximum number of bytes of one log, and
/// @param max_bytes  of all logs, which are read. If there are more, reading begins later.
/// @return the time at which the records begin that are read.
std::int64_t narrow_to_end(std::vector<run_files>& runs, std::int64_t begin_ns,
                           std::uint64_t max_log_bytes, std::uint64_t max_bytes);

/// Returns the end time of the last record of the logs; nullopt if unknown. Throws input_error.
std::optional<std::int64_t> last_record_ns(std::vector<run_files>& runs);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
