// Writes a run as the report's timeline draws it.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_DATA_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/formats/json_writer.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Limits for what a timeline draws, so that a page of all runs has less than 15 MB. Beyond a limit
/// only the longest are drawn, or neighbors are combined, and a note explains that.
struct drawn_limits {
  std::uint64_t operations = 500'000;  ///< about 8 bytes each
  std::size_t batches = 60'000;        ///< records; about 40 bytes each
  std::size_t values = 60'000;  ///< of each: counter values, asynchronous operations, intervals off
                                ///< the CPU. About 25 bytes each
  std::size_t arrows = 30'000;
  std::size_t threads = 300;

  /// The limits for each of `runs` runs.
  static drawn_limits for_runs(std::size_t runs);
};

/// Writes {"span_ns":…,"note":…,"tracks":[{"name":…,"batches":write_batches(),
/// "off_cpu":[[start,duration,reason],…],"slices":base64},…],
/// "async":[{"name":…,"lives":[[start,duration],…]},…],
/// "counters":[{"name":…,"values":[[time,value],…]},…],
/// "arrows":[[from,track,to,track],…]}. Times are in ns after `first_ns`. kind: 0 preprocessed, 1
/// wait, 2 step, 3 out-of-order arrival. counters: one per process that has it. slices: the
/// operations in order of start, each as start minus previous start (zigzag), duration and name, in
/// LEB128.
/// @param text   the text that `json` appends to.
/// @param run    read with run_parts::operations and totals.
/// @param names  the operations of all runs; those of this run are added.
void write_timeline(json_writer& json, std::string& text, const run_data& run, name_table& names,
                    const drawn_limits& limits);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_DATA_HPP
