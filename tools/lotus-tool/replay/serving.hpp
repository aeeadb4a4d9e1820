// Lists the possible explanations of a recording: which operations wait for each other.
#ifndef LOTUS_TOOL_REPLAY_SERVING_HPP
#define LOTUS_TOOL_REPLAY_SERVING_HPP

#include <vector>

#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// An operation for which the recording shows that it waits for a lock, a device or a limit.
struct serving_limit {
  const shared_operation* operation = nullptr;
  std::size_t fewest = 1;  ///< the fewest calls that may be served at once
  std::size_t most = 1;
};

/// Returns the operations that the recording shows to be limited, the most limiting one first; of
/// nested operations, the inner one.
std::vector<serving_limit> shown_limits(const recorded_pipeline& pipeline);

/// Returns the explanations that a prediction must consider, the most likely first. If an operation
/// is shown to be limited: that limit, with each plausible number of servers. Otherwise: that
/// nothing is limited, and for each operation for which a limit cannot be excluded, that limit. An
/// operation that is mostly blocked is known to scale only up to the number of calls that were open
/// at once.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline);

/// Returns possible explanations of two recordings of one pipeline with different numbers of
/// workers: nothing is limited, or one operation is, to any number of calls at once or to a rate.
/// The caller has to check each against both recordings.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SERVING_HPP
