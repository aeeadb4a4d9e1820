// What a picture shows of batches: their records, their spans in stages, and the arrows.
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
  optional_index<std::uint32_t> stage;  ///< index in side_data::stages
  optional_span making;
  bool instant = false;
};

/// The slices of one run that are shown. An arrow goes from every span that worked on a batch or
/// item to the next span: of the same item, else of the batch that contains the item, else to the
/// consumer's step.
class batch_slices {
 public:
  /// @param run    must outlive this.
  /// @param names  the picture's names; names of stages are added.
  /// @param flow   the next unused number of an arrow; incremented.
  batch_slices(const run_data& run, view& shown, name_table& names, std::uint64_t& flow);

  /// The slices of a log, in the order that sinks require.
  std::pair<const batch_slice*, const batch_slice*> of_file(std::size_t file) const;
  /// Draws one of the slices that of_file() returned.
  void draw(const batch_slice& slice, track where, trace_sink& sink) const;

 private:
  void add_records(const view& shown);
  void add_stages(view& shown, name_table& names);
  void add_arrows(std::uint64_t& flow);
  optional_span making_of(optional_file file, std::int64_t start_ns, stage_id stage,
                          std::int64_t number) const;
  /// If only a part of a run was read, epochs would be counted from the part's beginning.
  bool knows_epochs() const noexcept { return !run_.files->window; }
  void draw_record(const batch_slice& slice, slice_event event, trace_sink& sink) const;
  void draw_stage(const batch_slice& slice, slice_event event, trace_sink& sink) const;

  const run_data& run_;
  std::vector<span_number> makings_;                          // sorted, for binary search
  std::vector<batch_slice> slices_;                           // by file
  std::vector<std::pair<std::uint32_t, flow_point>> points_;  // by index of the slice
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_BATCH_SLICES_HPP
