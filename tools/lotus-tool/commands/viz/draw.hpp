// Draws runs for a trace viewer.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/nesting_lanes.hpp"
#include "commands/viz/view.hpp"
#include "log/batch_kinds.hpp"
#include "log/operation_names.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/tracks.hpp"
#include "waits/join/sampled_waits.hpp"

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
  bool next_lane() { return lanes_.next(); }
  void draw_lane(track where, trace_sink& sink) const;

 private:
  const run_data& run_;
  nesting_lanes<named_range> lanes_;
};

/// A slice for a batch's record or for a span of a stage.
struct batch_slice {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  file_id file;
  optional_record record;
  optional_index<std::uint32_t> stage;  ///< index in side_data::stages
  optional_span preprocessing;
  bool instant = false;
  std::uint32_t points = 0;       ///< number of ends of arrows
  std::uint32_t first_point = 0;  ///< index of the first of them in the list of all
};

/// The slices of one run that are shown. An arrow connects every span that worked on a batch or
/// item to the next span of the same batch or item or, after the last span of an item, to the next
/// span of the batch that contains the item. If no span follows, the arrow leads to the consumer's
/// step.
class batch_slices {
 public:
  /// @param run    must outlive this object.
  /// @param names  the names used in the trace; names of stages are added.
  /// @param flow   number of the next arrow; incremented for each arrow.
  batch_slices(const run_data& run, view& shown, name_table& names, std::uint64_t& flow);

  /// Returns the slices of a log, in the order that trace_sink requires.
  std::pair<const batch_slice*, const batch_slice*> of_file(std::size_t file) const;
  /// Draws one of the slices that of_file() returned.
  void draw(const batch_slice& slice, track where, trace_sink& sink) const;

 private:
  void add_records(const view& shown);
  void add_stages(view& shown, name_table& names);
  void add_arrows(std::uint64_t& flow);
  optional_span preprocessing_of(optional_file file, std::int64_t start_ns, stage_id stage,
                                 std::int64_t number);
  /// Whether the numbers of epochs are known; if only a part of a run was read, they are not.
  bool knows_epochs() const noexcept { return !run_.files->window; }
  void draw_record(const batch_slice& slice, slice_event& event, trace_sink& sink) const;
  void draw_stage(const batch_slice& slice, slice_event& event, trace_sink& sink) const;

  const run_data& run_;
  std::vector<span_number> preprocessings_;  // sorted, for a binary search
  std::vector<batch_slice> slices_;          // sorted by file
  std::vector<flow_point> points_;           // ends of arrows, in the order of their slices
  // Names of slices by the kind of their record, without the batch's number, because viewers add up
  // slices of the same name. The number becomes an argument of the slice.
  std::array<std::string, record_kinds> names_;
  std::string marker_name_;        // name of a slice for a batch that came out of order
  std::ptrdiff_t next_asked_ = 0;  // index in preprocessings_ that follows the last one found
};

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
