// Draws the batches of a run: their records, their spans in stages, and arrows between them.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/view.hpp"
#include "log/batch_kinds.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP
