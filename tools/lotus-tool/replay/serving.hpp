// Lists operations whose calls wait for each other and may therefore have limited a recorded run.
#ifndef LOTUS_TOOL_REPLAY_SERVING_HPP
#define LOTUS_TOOL_REPLAY_SERVING_HPP

#include <vector>

#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// An operation whose calls wait for a lock, a device or a rate limit according to the recording.
struct serving_limit {
  const shared_operation* operation = nullptr;
  std::size_t fewest = 1;  ///< lowest plausible number of calls that are served simultaneously
  std::size_t most = 1;
};

/// Returns the operations whose calls wait for a lock, a device or a rate limit according to the
/// recording. The operation that limits the run most comes first; of nested operations with similar
/// capacity, the inner one comes first.
std::vector<serving_limit> shown_limits(const recorded_pipeline& pipeline);

/// Returns the possible explanations of a run's throughput, most likely first. If the recording
/// shows that calls of an operation wait for a lock, a device or a rate limit, the explanations
/// differ in how many of its calls are served at the same time. Otherwise the first explanation is
/// "nothing is limited", and the others assume a limit for each operation that may have one. If an
/// operation is mostly blocked, its limit may be the number of calls that were open at the same
/// time.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline);

/// Returns possible explanations of two recordings of one pipeline with different numbers of
/// workers: nothing is limited, or one operation is limited to a number of simultaneous calls or to
/// a rate. The caller has to check which explanations fit both recordings.
std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SERVING_HPP
