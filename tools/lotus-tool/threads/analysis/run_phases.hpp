// Divides a run into phases in which different groups of threads use the CPUs.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_RUN_PHASES_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_RUN_PHASES_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct run_phase {
  double begin_s = 0;  ///< since the beginning of the recording
  double end_s = 0;
  double cpus = 0;  ///< number of CPUs in use, on average
  std::optional<std::size_t>
      group;              ///< the group that used the CPUs most; nullopt: nearly none did
  double share = 0;       ///< its share of the CPU time in this phase
  source_place function;  ///< the function in which it mostly ran

  double time_s() const { return end_s - begin_s; }
};

/// Returns the phases by time. A phase lasts at least a twelfth of the run. Empty if the use of the
/// CPUs was not sampled.
std::vector<run_phase> phases_of(const thread_samples& samples, const named_stacks& stacks,
                                 const std::vector<thread_activity>& groups);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_RUN_PHASES_HPP
