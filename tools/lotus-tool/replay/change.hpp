// Describes changes to a recorded pipeline, and plans the simulation of the changed pipeline.
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
  /// Maximum number of batches in flight for all workers together; used instead of `prefetch`.
  std::optional<std::size_t> in_flight;
  /// Whether the consumer receives any batch that is ready, not only the next one in order.
  bool unordered = false;
  /// For each changed operation or stage, by name: the factor by which it becomes faster. HUGE_VAL
  /// means that the operation or stage takes no time.
  std::map<std::string, double> faster;
  double preprocessing_faster = 1;  ///< factor by which all preprocessing becomes faster
  double step = 1;                  ///< factor by which all steps become longer
  std::optional<double> cpus;
  /// Whether the start-up takes no time: all threads are ready when an epoch begins, and an epoch's
  /// first batches take no longer than the others.
  bool no_start_up = false;
  bool own_thread = false;  ///< whether a worker builds the batches that the consumer built itself
  double batch_size = 1;    ///< factor by which batches become larger

  bool operator==(const pipeline_change& other) const;
};

/// Describes a random sample of a run's units (batches and items), see block_sampler. Element i is
/// the index of the recorded unit whose work unit i gets in the simulation. Empty: all units keep
/// their own work.
using drawn_units = std::vector<std::uint32_t>;

/// Returns the maximum number of threads that work in a stage at the same time after the change. A
/// stage that used all threads of a pool uses all threads of the changed pool. Other stages of a
/// pool, such as those that allow one thread at a time, keep their number.
std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage);

/// An assumption about a bottleneck that delays calls of an operation: a lock or device that serves
/// a limited number of calls at the same time, a rate limit, or a lock that calls hold for a part
/// of their time.
struct assumed_servers {
  /// The operation whose whole calls are served; nullptr: there is none.
  const shared_operation* operation = nullptr;
  std::size_t servers = unbounded;  ///< maximum number of calls that are served at the same time
  /// For a rate limit: the minimum interval between the starts of two calls, and the time that each
  /// call takes after its start. 0 if there is no rate limit.
  double apart_ns = 0;
  double each_ns = 0;
  /// For the lock recorded_pipeline::lock: which share (0..1) of the blocked time of its operation
  /// was spent waiting for the lock, and during which share of the remaining time the operation
  /// held the lock. lock_held is 0 if this lock is not assumed.
  double lock_waited = 0;
  double lock_held = 0;

  /// Whether no calls delay each other.
  bool is_free() const noexcept { return operation == nullptr && lock_held <= 0; }
};

/// Returns the time of all calls of an operation, without the operations inside it.
/// @param operation  the operation's name, without the S that logs put before it.
measured_work operation_time(const recorded_pipeline& pipeline, const name_table& names,
                             const std::string& operation);

/// Plans the simulation of a run after a change.
/// @param names  the names to which the name numbers in `pipeline` refer.
/// @param law    the speed law of the recorded run. It also applies to the changed run, except that
///   `change` may set another number of CPUs.
/// @param drawn  a random sample of the run's work; empty for the work as it was recorded.
/// @param assumed  what limited the recorded run, and therefore also limits the changed run.
replay_plan plan_of(const recorded_pipeline& pipeline, const name_table& names,
                    const speed_law& law, const pipeline_change& change,
                    const drawn_units& drawn = {}, const assumed_servers& assumed = {});

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_CHANGE_HPP
