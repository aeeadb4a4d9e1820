// Decides which operations a comparison contains, if the runs have very many.
#ifndef LOTUS_TOOL_COMPARISON_COMPARED_NAMES_HPP
#define LOTUS_TOOL_COMPARISON_COMPARED_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Finds the operations with the most time in all runs of a comparison. If a program has put
/// numbers into the names of its operations, there may be a million. A comparison of each of them
/// would need much memory, and nobody could read it.
class compared_names {
 public:
  /// Reads the logs of a run and sums up its operations. Problems of the logs are not reported,
  /// because they are reported when the run is read for the comparison. Throws input_error.
  void add(const run_files& run);

  /// Returns the names of the `most` operations with the most time, and reports how many operations
  /// there are. Returns an empty table if there are not more than `most`, so that all are compared.
  name_table choose(std::size_t most, diagnostic_log& diagnostics) const;

 private:
  name_table names_;
  std::vector<std::int64_t> totals_ns_;  // indexed by the id of a name
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARED_NAMES_HPP
