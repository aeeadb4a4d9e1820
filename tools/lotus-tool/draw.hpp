// Draws the runs into a sink.
#ifndef LOTUS_TOOL_DRAW_HPP
#define LOTUS_TOOL_DRAW_HPP

#include <cstdint>
#include <vector>

#include "log_files.hpp"
#include "names.hpp"
#include "run_model.hpp"
#include "trace_sink.hpp"
#include "tracks.hpp"
#include "view.hpp"

namespace lotus::tool {

/// A run that was read once: what a second reading needs to draw it.
struct scanned_run {
  const run_files* files = nullptr;
  run_batches batches;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t first_flow = 0;  ///< flow ids of its batches begin here
};

/// Draws one run: for every log its batch records, and with `operations` the operations, which
/// are read from the logs again; then how many batches lie ready and how many workers are busy.
/// Throws input_error.
void draw_run(const scanned_run& run, const run_tracks& tracks, bool operations, view& shown,
              name_table& names, trace_sink& sink);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DRAW_HPP
