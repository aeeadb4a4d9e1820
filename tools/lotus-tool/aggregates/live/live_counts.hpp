// Reads the sums of aggregated operations from the ring file of a running process.
#ifndef LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP
#define LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP

#include <cstdint>
#include <functional>
#include <lotus/recovery/dead_ring.hpp>
#include <string>
#include <string_view>

#include "aggregates/live/counted_window.hpp"

namespace lotus::tool {

/// Looks up names in a ring file.
struct ring_names {
  /// Returns "S<name>," for a name's id.
  std::function<std::string_view(std::uint32_t)> line_start;
  /// Returns the folder of a loader for the loader's id.
  std::function<std::string(std::uint32_t)> folder;
};

/// Returns the sums of all threads since the recording began; no sums if a block cannot be read.
/// The process continues at the same time: a call that ends during the reading may be included in
/// one sum and missing in another.
counted_by_name read_counts(const detail::dead_ring_file& file, const ring_names& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP
