// Reads the sums of aggregated operations from the ring file of a running process.
#ifndef LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP
#define LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "lotus/aggregates/aggregate_chain.hpp"

namespace lotus::tool {

/// Finds the blocks of aggregates in a ring file and reads their sums. The process continues at the
/// same time: a call that ends during the reading may be included in one sum and missing in
/// another. Not thread-safe.
class live_counts {
 public:
  struct names {
    /// Returns "S<name>," for a name's id.
    std::function<std::string_view(std::uint32_t)> line_start;
    /// Returns the folder of a loader for the loader's id.
    std::function<std::string(std::uint32_t)> folder;
  };

  /// Stores the position of a block of aggregates in the ring file, for read(). Ignores a block of
  /// a size that Lotus never writes, or that would make all blocks together too large.
  void found(std::uint64_t at, std::uint64_t bytes);
  bool any() const noexcept { return !blocks_.empty(); }

  /// Returns the sums of all threads since the recording began; no sums if a block cannot be read.
  /// @param fd  descriptor of the ring file, which remains the caller's.
  counted_by_name read(int fd, const names& of);

 private:
  struct located_block {
    std::uint64_t at;
    std::uint64_t bytes;
  };

  std::vector<located_block> blocks_;
  std::uint64_t bytes_ = 0;  // size of all blocks
  std::unique_ptr<lotus::detail::whole_aggregate> room_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_LIVE_COUNTS_HPP
