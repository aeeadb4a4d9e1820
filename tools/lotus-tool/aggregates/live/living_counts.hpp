// The aggregates in the ring file of a process that lives.
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

/// Where blocks of aggregates stand in a ring file, and what they hold. The process is left alone:
/// of a thread that is in such calls at that moment, some of them may be in one figure and not in
/// another. Not thread-safe.
class living_counts {
 public:
  struct names {
    std::function<std::string_view(std::uint32_t)> line_start;  ///< "S<name>,", by id
    std::function<std::string(std::uint32_t)> folder;           ///< of a loader, by id
  };

  /// There is one more. What no process of ours makes is passed over.
  void found(std::uint64_t at, std::uint64_t bytes);
  bool any() const noexcept { return !blocks_.empty(); }

  /// Of all threads, since the recording began; what cannot be read is left out.
  /// @param fd  of the ring file, borrowed.
  counted_by_name read(int fd, const names& of);

 private:
  struct place {
    std::uint64_t at;
    std::uint64_t bytes;
  };

  std::vector<place> blocks_;
  std::uint64_t bytes_ = 0;  // of all
  std::unique_ptr<lotus::detail::whole_aggregate> room_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_AGGREGATES_LIVE_LIVING_COUNTS_HPP
