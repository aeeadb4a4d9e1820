// Lists operations whose calls wait for each other and may therefore have limited a recorded run.
#ifndef LOTUS_TOOL_REPLAY_SERVING_HPP
#define LOTUS_TOOL_REPLAY_SERVING_HPP

#include <cstddef>
#include <vector>

#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the assumption that at most `servers` calls of an operation are served at the same time,
/// each from its start to its end.
/// @param works  number of recorded_pipeline::works.
assumed_servers served_by(const shared_operation& op, std::size_t servers, std::size_t works);

/// Returns the possible explanations of a run's throughput, most likely first. If the recording
/// shows that calls of an operation wait for a lock, a device or a rate limit, the explanations
/// differ in how many of its calls are served at the same time. Otherwise the first explanation is
/// "nothing is limited", and the others assume a limit for each operation that may have one. If an
/// operation is mostly blocked, its limit may be the number of calls that were open at the same
/// time.
/// @param operations  those of recorded_pipeline::shared that may be limited.
std::vector<assumed_servers> explanations_of(const std::vector<const shared_operation*>& operations,
                                             const recorded_pipeline& pipeline);

/// Returns possible explanations of two recordings of one pipeline with different numbers of
/// workers: nothing is limited, or one operation is limited to a number of simultaneous calls or to
/// a rate. The caller has to check which explanations fit both recordings.
std::vector<assumed_servers> explanations_of(const std::vector<const shared_operation*>& operations,
                                             const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SERVING_HPP
