// Reads a time window of a long run without reading the whole run.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP

#include <cstdint>
#include <optional>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// The part of a run that was requested, by time.
struct wanted_part {
  std::optional<std::int64_t> from_ns;  ///< since the run's beginning
  std::optional<std::int64_t> to_ns;
  std::optional<std::int64_t> last_ns;  ///< the last part of the run
};

/// Runs whose logs together are smaller are read as a whole.
inline constexpr std::uint64_t narrowed_from_bytes = std::uint64_t{16} << 20U;

/// Reduces a run's logs to what may be about a part of it, and sets run_files::window; small runs
/// stay unchanged. Reports what is not searched. Throws input_error.
///
/// Logs are sorted by end time, except for records with given times, so the part is found by binary
/// search, in compact logs with the headers of blocks. A margin before and after it is read too,
/// for the batches and spans that reach into it: at least a minute, twice the longest span and
/// twice the largest step back, as reported by processes or seen in samples of the logs; but at
/// most 4 MiB of each log on either side. The range is then extended by the step back.
/// @param from_bytes  minimum size of a large run.
void narrow(run_files& run, const wanted_part& wanted, diagnostic_log& diagnostics,
            std::uint64_t from_bytes = narrowed_from_bytes);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
