// A window of a long run, without reading all of it.
#ifndef LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
#define LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP

#include <cstdint>
#include <optional>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// What part of a run is wanted, by time.
struct wanted_part {
  std::optional<std::int64_t> from_ns;  ///< after the run's beginning
  std::optional<std::int64_t> to_ns;
  std::optional<std::int64_t> last_ns;  ///< the last part of the run
};

/// Logs that are smaller all together are read whole.
inline constexpr std::uint64_t narrowed_from_bytes = std::uint64_t{16} << 20U;

/// Leaves of a run's logs what may tell of a part of it, and sets run_files::window; small runs
/// stay as they are. Says what is not looked for. Throws input_error.
///
/// Logs stand in the order of their ends, but for what was recorded with a time of its own: the
/// part is found by halving, in compact logs by the headers of blocks. Before and behind it as much
/// is read as batches and spans seem to take that reach into it: twice as long as the longest span
/// that was seen in samples of the logs, and twice as far as the largest step back, as processes
/// tell or samples show; a minute at least; but of no log more than 4 MiB on either side, and the
/// step back.
/// @param from_bytes  what a large run has at least.
void narrow(run_files& run, const wanted_part& wanted, diagnostic_log& diagnostics,
            std::uint64_t from_bytes = narrowed_from_bytes);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_LOG_WINDOW_HPP
