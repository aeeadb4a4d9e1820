// What a picture shows beside the slices of threads: counters, asynchronous operations, time off
// the CPU, ranges.
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

/// How many batches lie ready, how many workers are busy, and the program's own counters.
void draw_counters(const run_data& run, const run_tracks& tracks, const view& shown,
                   trace_sink& sink);

/// None where only chosen batches or items are shown: it is not known which they belong to.
/// @param id  the next free number of one; counted up.
void draw_async(const run_data& run, const run_tracks& tracks, view& shown, name_table& names,
                std::uint64_t& id, trace_sink& sink);

/// The stretches of a log's thread: "blocked", "no CPU" (runnable, it waited for one), or "off the
/// CPU" where it is not known which. What one notice of the thread told is one stretch.
/// @param where  a track of their own.
void draw_off_cpu(const run_data& run, std::size_t file, track where, const view& shown,
                  trace_sink& sink);

/// The ranges of a log's thread, one lane of them after the other.
class range_drawer {
 public:
  /// @param file  place of the log. A thread that has none is drawn with the first.
  range_drawer(const run_data& run, std::size_t file, const view& shown);
  /// Whether there is one more lane, which draw_lane() draws to a track of its own.
  bool next_lane();
  void draw_lane(track where, trace_sink& sink) const;

 private:
  const run_data& run_;
  nesting_lanes<named_range> lanes_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_BESIDE_THREADS_HPP
