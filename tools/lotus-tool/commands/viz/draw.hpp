// Draws runs for a trace viewer.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/view.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"
#include "model/tracks.hpp"
#include "waits/join/sampled_waits.hpp"

namespace lotus::tool {

/// State that all runs in one trace share.
struct drawing_state {
  name_table& names;  ///< names of operations
  trace_sink& sink;
  number_pool tids{};      ///< numbers for tracks that are not a thread's main track
  std::uint64_t flow = 1;  ///< number of the next arrow
  std::uint64_t async = 1;
  /// The threads whose time off the CPU was already drawn, as pairs of the information files'
  /// folder and the log's number. A thread has the same number in all loaders.
  std::set<std::pair<std::string, std::uint64_t>> with_off_cpu{};
};

/// Returns the position of a thread's track: `below` is 0 for its main track, and above 0 for its
/// further tracks, which follow it. The tracks of the verdict come before all threads.
constexpr std::uint32_t thread_order(std::size_t file, std::uint32_t below = 0) {
  return (static_cast<std::uint32_t>(file) + 1) * 4 + below;
}
constexpr std::uint32_t verdict_order(std::uint32_t number) {
  return number;
}

/// Draws one run. For every log, draws its batch records and stages, and, if `operations` is true,
/// its operations, for which the run must have been read with run_parts::operations. Then draws
/// everything that has its own tracks, such as counters. Slices that overlap partly, such as scopes
/// that moved to another thread, are drawn on a further track below the thread's track. Throws
/// input_error.
/// @param waits  samples of what threads waited for. An operation with samples shows the reasons of
/// its waits as an argument.
void draw_run(const run_data& run, const run_tracks& tracks, bool operations,
              const log_waits& waits, view& shown, drawing_state& picture);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP
