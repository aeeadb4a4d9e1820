// What is changed about a pipeline before it is replayed.
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

/// All of it together; a default one changes nothing.
struct pipeline_change {
  std::optional<std::size_t> workers;          ///< threads of the first stage, or of its pool
  std::map<std::string, std::size_t> threads;  ///< of a stage, by its name
  std::optional<std::size_t> prefetch;         ///< batches out at once for each worker
  bool unordered = false;                      ///< the consumer takes what is there
  std::map<std::string, double>
      faster;                ///< operations and stages by name; HUGE_VAL: it costs nothing
  double making_faster = 1;  ///< all of it
  double step = 1;           ///< factor of the time that a step takes
  std::optional<double> cpus;
  bool no_start_up = false;  ///< threads are there at once, and first batches take no longer
  bool own_thread = false;   ///< batches that the consumer made itself are made by a worker
  double batch_size = 1;     ///< factor

  bool operator==(const pipeline_change& other) const;
};

/// Which recorded batch stands for which, in a sample drawn anew; empty: each for itself.
using drawn_units = std::vector<std::uint32_t>;

/// Threads that work in a stage at once. Stages that all threads of a pool did are done by all of
/// the changed one; others, such as those in order, keep their number.
std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage);

/// How the calls of an operation hold each other up.
struct assumed_servers {
  const shared_operation* operation = nullptr;  ///< nullptr: they do not
  std::size_t servers = unbounded;              ///< so many are served at once; the others wait
  /// Not by servers but by a limit: they are let through so far apart, and then take so long each.
  double apart_ns = 0;
  double each_ns = 0;
};

/// The run as it would be with the change.
/// @param names  of the run.
/// @param law    under which it was recorded, and which holds but for changed CPUs.
replay_plan plan_of(const recorded_pipeline& pipeline, const name_table& names,
                    const speed_law& law, const pipeline_change& change,
                    const drawn_units& drawn = {}, const assumed_servers& assumed = {});

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_HPP
