// Draws the runs into a sink.
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

namespace lotus::tool {

/// What the runs of one picture share.
struct picture_state {
  name_table& names;  ///< of operations
  trace_sink& sink;
  number_pool tids{};      ///< for further tracks
  std::uint64_t flow = 1;  ///< the next arrow's number
  std::uint64_t async = 1;
  /// Threads whose time off the CPU is drawn, by where their processes tell of themselves and their
  /// log's number: it is the same in every loader.
  std::set<std::pair<std::string, std::uint64_t>> with_off_cpu{};
};

/// Where threads stand among each other: below each, its further tracks.
constexpr std::uint32_t thread_order(std::size_t file, std::uint32_t below = 0) {
  return static_cast<std::uint32_t>(file) * 4 + below;
}

/// Draws one run, whose operations were not kept: for every log its batch records and stages, and
/// with `operations` the operations, which are read from the logs again; then what lies beside.
/// What overlaps partly, as scopes do that cross threads, gets a further track beside its thread's.
/// Throws input_error.
void draw_run(const run_data& run, const run_tracks& tracks, bool operations, view& shown,
              picture_state& picture);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP
