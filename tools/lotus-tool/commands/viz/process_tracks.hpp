// Draws everything that is not on a thread's own track: counters, asynchronous operations, time off
// the CPU, and ranges.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_PROCESS_TRACKS_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_PROCESS_TRACKS_HPP

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

/// Draws counters of ready batches and of busy workers, and the counters that the program recorded.
void draw_counters(const run_data& run, const run_tracks& tracks, const view& shown,
                   trace_sink& sink);

/// Draws asynchronous operations. Draws none if only chosen batches or items are shown, because it
/// is unknown which of them an operation belongs to.
/// @param id  number of the next asynchronous operation; incremented for each.
void draw_async(const run_data& run, const run_tracks& tracks, view& shown, name_table& names,
                std::uint64_t& id, trace_sink& sink);

/// Draws when a log's thread was off the CPU. The intervals are named "blocked", "waits for CPU"
/// or, if the reason is unknown, "off the CPU". Each interval is the sum that one record of the log
/// reports: the thread may have been off the CPU several times, and have run in between.
/// @param where  the track for these intervals; it must contain nothing else.
void draw_off_cpu(const run_data& run, std::size_t file, track where, const view& shown,
                  trace_sink& sink);

/// Draws the ranges of a log's thread; call draw_lane() for each lane.
class range_drawer {
 public:
  /// @param file  index of the log. Ranges of threads without a log are drawn with the first log.
  range_drawer(const run_data& run, std::size_t file, const view& shown);
  /// Starts the next lane, which needs a track of its own. Returns false if there is none.
  bool next_lane();
  void draw_lane(track where, trace_sink& sink) const;

 private:
  const run_data& run_;
  nesting_lanes<named_range> lanes_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_PROCESS_TRACKS_HPP
