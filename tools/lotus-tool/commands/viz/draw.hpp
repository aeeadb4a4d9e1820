// Draws runs into a sink.
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

/// State that all runs of one picture share.
struct picture_state {
  name_table& names;  ///< of operations
  trace_sink& sink;
  number_pool tids{};      ///< numbers for further tracks
  std::uint64_t flow = 1;  ///< the next arrow's number
  std::uint64_t async = 1;
  /// The threads whose time off the CPU is drawn, by folder of the information files and number of
  /// the log, because a thread has the same number in every loader.
  std::set<std::pair<std::string, std::uint64_t>> with_off_cpu{};
};

/// The order of threads' tracks: each thread is followed by its further tracks.
constexpr std::uint32_t thread_order(std::size_t file, std::uint32_t below = 0) {
  return static_cast<std::uint32_t>(file) * 4 + below;
}

/// Draws one run that was read without its operations: for every log its batch records and stages
/// and, if `operations` is true, the operations, which are read from the logs again; then
/// everything that has tracks of its own. Slices that overlap partly, such as scopes that move
/// between threads, get a further track below their thread's track. Throws input_error.
void draw_run(const run_data& run, const run_tracks& tracks, bool operations, view& shown,
              picture_state& picture);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_DRAW_HPP
