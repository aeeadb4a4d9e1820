// Describes changes to a recorded pipeline and plans the simulation of the changed pipeline.
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

/// Changes that are applied together. A default-constructed object changes nothing.
struct pipeline_change {
  /// Number of threads of the first stage or, if this stage shares a pool of threads, of the pool.
  std::optional<std::size_t> workers;
  /// For each changed stage, by name: its new number of threads.
  std::map<std::string, std::size_t> threads;
  std::optional<std::size_t> prefetch;  ///< maximum number of batches in flight per worker
  /// Maximum number of batches in flight of all workers together; replaces `prefetch`.
  std::optional<std::size_t> in_flight;
  bool unordered = false;  ///< whether the consumer receives whichever batch is ready
  /// For each changed operation or stage, by name: the factor by which it becomes faster. HUGE_VAL
  /// means that the operation or stage takes no time.
  std::map<std::string, double> faster;
  double preprocessing_faster = 1;  ///< factor by which all preprocessing becomes faster
  double step = 1;                  ///< factor by which all steps become longer
  std::optional<double> cpus;
  /// Whether all threads are ready when an epoch begins, and the first batches of an epoch take no
  /// longer than the others.
  bool no_start_up = false;
  bool own_thread = false;  ///< whether a worker builds the batches that the consumer built itself
  double batch_size = 1;    ///< factor by which batches become larger

  bool operator==(const pipeline_change& other) const;
};

/// For each unit (batch or item) of a resampled run: the index of the recorded unit whose work
/// replaces the work of this unit. Empty means that no work is replaced.
using drawn_units = std::vector<std::uint32_t>;

/// Returns the maximum number of threads that work in a stage at the same time after the change. A
/// stage that used all threads of a pool uses all threads of the changed pool; other stages, such
/// as ordered ones, keep their number.
std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage);

/// An assumption about which calls have to wait for each other, for example for a lock or a device.
struct assumed_servers {
  /// The operation; nullptr: no calls delay each other.
  const shared_operation* operation = nullptr;
  std::size_t servers = unbounded;  ///< how many calls are served simultaneously; others wait
  /// The parameters of a rate limit, which may be assumed instead of servers: the minimum interval
  /// between the starts of calls, and the time that each call takes after it may start.
  double apart_ns = 0;
  double each_ns = 0;
};

/// Plans the simulation of the run after a change.
/// @param names  the names to which the name numbers in `pipeline` refer.
/// @param law    the speed law of the recorded run. The changed run obeys the same law, but
///   `change` may set another number of CPUs.
replay_plan plan_of(const recorded_pipeline& pipeline, const name_table& names,
                    const speed_law& law, const pipeline_change& change,
                    const drawn_units& drawn = {}, const assumed_servers& assumed = {});

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_HPP
