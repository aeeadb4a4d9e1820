// Sums up the operations that the timeline does not draw because they are too many, so that the
// page's panels can still show exact sums.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Divides the time of each log into cells, for which the durations of operations are summed.
/// Returns the sorted edges of the cells. The edges are the times when the thread began or finished
/// a batch, because the panel of a batch shows sums for exactly that time. A thread without batches
/// gets evenly spaced edges.
/// @param most  maximum number of cells for all logs together.
std::vector<std::vector<std::int64_t>> cells_by_file(const run_data& run, std::size_t most);

/// The sums of one log's operations that are not drawn, for each cell in which such operations
/// begin.
class undrawn_sums {
 public:
  /// @param edges  the edges of the log's cells, from cells_by_file(). Must outlive this object.
  explicit undrawn_sums(const std::vector<std::int64_t>& edges)
      : edges_(edges), cells_(edges.size() < 2 ? 1 : edges.size() - 1) {}

  /// Adds an operation that is not drawn.
  void add(const operation& op);

  /// Appends the sums. All numbers are in LEB128, in base64. A cell consists of its start minus the
  /// end of the previous written cell (zigzag), its length, and the number of names. For each name
  /// follow the name's number, the number of operations, and the sum and maximum of their
  /// durations.
  /// @param run_first_ns  the start of the run.
  /// @param name_of  maps a name's number in the run to its number on the page.
  void append_to(std::string& text, std::int64_t run_first_ns,
                 const std::vector<std::uint32_t>& name_of) const;

 private:
  struct name_sum {
    std::uint32_t name = 0;
    std::uint64_t count = 0;
    std::int64_t ns = 0;
    std::int64_t longest_ns = 0;
  };

  /// Sets cell_ to the cell in which an operation begins, and [from_ns_, to_ns_) to the range of
  /// start times for which the result is the same.
  void find_cell(std::int64_t start_ns);

  const std::vector<std::int64_t>& edges_;
  std::vector<std::vector<name_sum>> cells_;
  std::size_t cell_ = 0;
  std::int64_t from_ns_ = INT64_MAX;  // INT64_MAX: find_cell() was not called yet
  std::int64_t to_ns_ = INT64_MIN;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP
