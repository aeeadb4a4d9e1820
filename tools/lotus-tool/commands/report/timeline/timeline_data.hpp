// Writes the data that the report's timeline draws for a run.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_DATA_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_DATA_HPP

#include <cstddef>
#include <cstdint>

#include "base/formats/json_writer.hpp"
#include "commands/report/batch_histories.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Limits for the number of things that a timeline draws, so that a page for a million operations
/// is smaller than 5 MB. If a limit is exceeded, only the longest are drawn, or neighbors are
/// combined, and a note on the page explains that.
struct drawn_limits {
  std::uint64_t operations = 250'000;  ///< number of operations, about 10 bytes each
  std::size_t batches = 24'000;        ///< number of batch records, about 40 bytes each
  /// Number of counter values; the same limit is used for asynchronous operations and for intervals
  /// off the CPU. About 25 bytes each.
  std::size_t values = 30'000;
  std::size_t arrows = 15'000;
  std::size_t segments = 20'000;  ///< segments of the critical path, about 10 bytes each
  std::size_t threads = 300;
  std::size_t names = 2000;  ///< names of operations; each is a row of the page's table

  /// Returns the limits for each run if the page shows `runs` runs.
  static drawn_limits for_runs(std::size_t runs);
};

/// Writes {"span_ns":…,"note":…,"tracks":[{"name":…,"batches":write_batches(),
/// "off_cpu":[[start,duration,reason],…],"slices":base64,"undrawn":undrawn_sums},…],
/// "calls":call_tree,"async":[{"name":…,"histories":[[start,duration],…]},…],
/// "counters":[{"name":…,"values":[[time,value],…]},…], "arrows":[[from,track,to,track],…]}. Times
/// are in ns since `first_ns`. The kinds of batches are 0 preprocessed, 1 wait, 2 step, 3
/// out-of-order arrival. `counters` has one entry for each process that uses the counter. `slices`
/// are the operations in order of start; each is written in LEB128 as its start minus the previous
/// start (zigzag), its duration and its name.
/// @param run    read with run_parts::operations and totals.
/// @param listed  the operations that are named; the others count as one operation.
/// @param names  the names of operations in all runs; those of this run are added.
void write_timeline(json_writer& json, const run_data& run, const listed_operations& listed,
                    name_table& names, const drawn_limits& limits);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_TIMELINE_DATA_HPP
