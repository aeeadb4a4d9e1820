// What may have to wait for what: the ways to explain a recording that it leaves open.
#ifndef LOTUS_TOOL_REPLAY_SERVING_HPP
#define LOTUS_TOOL_REPLAY_SERVING_HPP

#include <vector>

#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// An operation that waits for a lock, a device or a limit, as the recording shows.
struct serving_limit {
  const shared_operation* operation = nullptr;
  std::size_t fewest = 1;  ///< of the calls that are served at once
  std::size_t most = 1;
};

/// What the recording shows to be limited: of operations within each other the inner one.
std::vector<serving_limit> shown_limits(const recorded_pipeline& pipeline);

/// The explanations that a prediction must hold for; the likeliest first. Where something is shown
/// to be limited, that it is, by the numbers of servers that are plausible; otherwise that nothing
/// is, and for each operation of which that is not shown that it is. An operation that is mostly
/// blocked is known to scale only up to as many calls at once as there were.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline);

/// What may explain two recordings of one pipeline, with different numbers of workers: that nothing
/// is limited, or one operation, to any number of calls at once or to a rate. Each has to be tried
/// on both.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SERVING_HPP
