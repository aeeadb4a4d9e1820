// Changes how the recorded times of a pipeline count in simulations.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_RECOUNTED_TIMES_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_RECOUNTED_TIMES_HPP

#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// For a run without recorded CPU times: returns `p` with preprocessing counted as CPU time. If
/// there were fewer CPUs than threads, only the share CPUs / threads of the time counts, because
/// each thread had to wait for a CPU for the rest of the time.
recorded_pipeline on_cpus(recorded_pipeline p, double cpus);

/// Returns `p` with the time in which threads waited for a CPU counted as blocked time.
recorded_pipeline with_queueing(recorded_pipeline p);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_RECOUNTED_TIMES_HPP
