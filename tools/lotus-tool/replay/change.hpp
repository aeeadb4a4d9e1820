// Describes changes to a recorded pipeline and plans its simulation.
#ifndef LOTUS_TOOL_REPLAY_CHANGE_HPP
#define LOTUS_TOOL_REPLAY_CHANGE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {

/// Changes that are applied together; a default one changes nothing.
struct pipeline_change {
  std::optional<std::size_t> workers;          ///< threads of the first stage, or of its pool
  std::map<std::string, std::size_t> threads;  ///< threads of a stage, by its name
  std::optional<std::size_t> prefetch;         ///< batches in flight per worker
  bool unordered = false;                      ///< the consumer receives whichever batch is ready
  /// Speed-up by name of operation or stage; HUGE_VAL: no cost.
  std::map<std::string, double> faster;
  double making_faster = 1;  ///< speed-up of all preprocessing
  double step = 1;           ///< factor for the duration of steps
  std::optional<double> cpus;
  /// Threads start at once, and first batches take no longer than others.
  bool no_start_up = false;
  bool own_thread = false;  ///< a worker builds the batches that the consumer built itself
  double batch_size = 1;    ///< factor for the size of batches

  bool operator==(const pipeline_change& other) const;
};

/// For each unit of a resampled run, the recorded unit that replaces it; empty: each stays itself.
using drawn_units = std::vector<std::uint32_t>;

/// Returns the number of threads that work in a stage at once. A stage that used all threads of a
/// pool uses all threads of the changed pool; other stages, such as ordered ones, keep their
/// number.
std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage);

/// An assumption about how the calls of an operation delay each other.
struct assumed_servers {
  const shared_operation* operation = nullptr;  ///< nullptr: they do not delay each other
  std::size_t servers = unbounded;  ///< the number of calls served at once; the others wait
  /// If a rate limit applies instead of servers: the interval between the calls that it lets
  /// through, and the time that each call takes after that.
  double apart_ns = 0;
  double each_ns = 0;
};

/// Plans the simulation of the run with a change.
/// @param names  of the run.
/// @param law    the speed law of the recorded run; it also holds for the changed run, except for
///               the number of CPUs if that is changed.
replay_plan plan_of(const recorded_pipeline& pipeline, const name_table& names,
                    const speed_law& law, const pipeline_change& change,
                    const drawn_units& drawn = {}, const assumed_servers& assumed = {});

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_HPP
