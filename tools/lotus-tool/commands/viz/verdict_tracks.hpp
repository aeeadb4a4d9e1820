// Draws the verdict and the critical path of a run as tracks of its process.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VERDICT_TRACKS_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VERDICT_TRACKS_HPP

#include <optional>
#include <vector>

#include "commands/viz/draw.hpp"
#include "findings/screen/first_screen.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

struct run_verdict {
  first_screen screen;
  std::vector<path_activity> path;  ///< in order of time; adjacent equal activities are joined
};

/// Diagnoses a run. Returns nothing if the run gets no verdict.
/// @param run  must have been read with diagnosis_parts.
std::optional<run_verdict> find_verdict(const run_data& run);

/// Draws two tracks. The first has one slice over the whole run, with the headline of the diagnosis
/// as its name, and the reason, warnings and suggestions as arguments. The second shows the
/// activities on the critical path one after the other, with their threads.
void draw_verdict(const run_verdict& found, const run_data& run, const run_tracks& tracks,
                  drawing_state& picture);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VERDICT_TRACKS_HPP
