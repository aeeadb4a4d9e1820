// Draws what is not a slice of a thread's own track: counters, asynchronous operations, time off
// the CPU, and ranges.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_BESIDE_THREADS_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_BESIDE_THREADS_HPP

#include <cstddef>
#include <cstdint>

#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/nesting_lanes.hpp"
#include "commands/viz/view.hpp"
#include "log/operation_names.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

/// Draws the numbers of ready batches and of busy workers, and the program's own counters.
void draw_counters(const run_data& run, const run_tracks& tracks, const view& shown,
                   trace_sink& sink);

/// Draws nothing if only chosen batches or items are shown, because it is unknown to which of them
/// an asynchronous operation belongs.
/// @param id  the next unused number of an asynchronous operation; incremented.
void draw_async(const run_data& run, const run_tracks& tracks, view& shown, name_table& names,
                std::uint64_t& id, trace_sink& sink);

/// Draws the intervals of a log's thread off the CPU: "blocked", "no CPU" (it was runnable and
/// waited for a CPU), or "off the CPU" if the reason is unknown. One record of the thread is one
/// interval.
/// @param where  a separate track for these intervals.
void draw_off_cpu(const run_data& run, std::size_t file, track where, const view& shown,
                  trace_sink& sink);

/// Draws the ranges of a log's thread, one lane after the other.
class range_drawer {
 public:
  /// @param file  index of the log. Ranges of a thread without a log are drawn with the first log.
  range_drawer(const run_data& run, std::size_t file, const view& shown);
  /// Starts the next lane, which draw_lane() draws on a track of its own. Returns false if there is
  /// none.
  bool next_lane();
  void draw_lane(track where, trace_sink& sink) const;

 private:
  const run_data& run_;
  nesting_lanes<named_range> lanes_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_BESIDE_THREADS_HPP
