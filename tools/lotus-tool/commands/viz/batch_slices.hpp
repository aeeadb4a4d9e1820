// What a picture shows of batches: their records, the stages they went through, and the arrows.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/view.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

/// A batch's record, or a span of a stage.
struct batch_slice {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  file_id file;
  optional_record record;
  optional_index<std::uint32_t> stage;  ///< place in side_data::stages
  optional_span making;
  bool instant = false;
};

/// The slices of one run that are shown. Of every span that a batch or item was made by an arrow
/// goes to the span that it came to next: of the same item, else of the batch that the item went
/// into, else to the consumption.
class batch_slices {
 public:
  /// @param run    must outlive this.
  /// @param names  of the picture; gets those of stages.
  /// @param flow   the next free number of an arrow; counted up.
  batch_slices(const run_data& run, view& shown, name_table& names, std::uint64_t& flow);

  /// Those of a log, in the order in which sinks want them.
  std::pair<const batch_slice*, const batch_slice*> of_file(std::size_t file) const;
  /// Draws one of of_file().
  void draw(const batch_slice& slice, track where, trace_sink& sink) const;

 private:
  void add_records(const view& shown);
  void add_stages(view& shown, name_table& names);
  void add_arrows(std::uint64_t& flow);
  optional_span making_of(optional_file file, std::int64_t start_ns, stage_id stage,
                          std::int64_t number) const;
  /// Of a part of a run they would count from its beginning.
  bool knows_epochs() const noexcept { return !run_.files->window; }
  void draw_record(const batch_slice& slice, slice_event event, trace_sink& sink) const;
  void draw_stage(const batch_slice& slice, slice_event event, trace_sink& sink) const;

  const run_data& run_;
  std::vector<span_number> makings_;                          // sorted, to be found
  std::vector<batch_slice> slices_;                           // by file
  std::vector<std::pair<std::uint32_t, flow_point>> points_;  // by place of the slice
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP
