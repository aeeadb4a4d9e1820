// Reads the sums of counted operations from the ring file of a running process.
#ifndef LOTUS_TOOL_AGGREGATES_LIVE_LIVING_COUNTS_HPP
#define LOTUS_TOOL_AGGREGATES_LIVE_LIVING_COUNTS_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "lotus/aggregates/aggregate_chain.hpp"

namespace lotus::tool {

/// Finds the blocks of aggregates in a ring file and reads their sums. The process is not stopped:
/// if a thread is inside a counted call at that moment, the call may be included in one sum and
/// missing in another. Not thread-safe.
class living_counts {
 public:
  struct names {
    std::function<std::string_view(std::uint32_t)> line_start;  ///< "S<name>,", by the name's id
    std::function<std::string(std::uint32_t)> folder;  ///< a loader's folder, by the loader's id
  };

  /// Adds a block of aggregates. Ignores a block whose size our library never writes.
  void found(std::uint64_t at, std::uint64_t bytes);
  bool any() const noexcept { return !blocks_.empty(); }

  /// The sums of all threads since the recording began; unreadable blocks are left out.
  /// @param fd  descriptor of the ring file, not owned.
  counted_by_name read(int fd, const names& of);

 private:
  struct place {
    std::uint64_t at;
    std::uint64_t bytes;
  };

  std::vector<place> blocks_;
  std::uint64_t bytes_ = 0;  // of all blocks
  std::unique_ptr<lotus::detail::whole_aggregate> room_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_LIVING_COUNTS_HPP
