// The table that shows where the time of a run's critical path goes.
#ifndef LOTUS_TOOL_FINDINGS_SCREEN_PATH_ROWS_HPP
#define LOTUS_TOOL_FINDINGS_SCREEN_PATH_ROWS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/path/critical_path.hpp"

namespace lotus::tool {

/// One row of the table that shows where the run's time goes, in whole percent of the run's time.
/// The shares of all rows add up to 100; `running`, `no_cpu` and `blocked` add up to `share`.
struct shown_share {
  std::string name;
  int share = 0;
  std::optional<int> running;
  std::optional<int> no_cpu;
  std::optional<int> blocked;
};

/// Returns the rows, largest share first. The last one may stand for several parts.
/// @param rows  their maximum number.
std::vector<shown_share> path_rows(const critical_path& path, std::size_t rows);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_SCREEN_PATH_ROWS_HPP
