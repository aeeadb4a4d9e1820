// Describes changes to a recorded pipeline, and plans the simulation of the changed pipeline.
#ifndef LOTUS_TOOL_REPLAY_CHANGE_HPP
#define LOTUS_TOOL_REPLAY_CHANGE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {

/// An operation that is moved before another one with which it commutes.
struct moved_operation {
  std::string earlier;  ///< the moved operation; "": none
  std::string later;    ///< the operation that then works on less
  double share = 0;     ///< share (0..1) of its work that is left for `later`; 0: not known yet

  bool operator==(const moved_operation& other) const {
    return earlier == other.earlier && later == other.later && share == other.share;
  }
};

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
  /// Number of samples of each batch, if batches are filled with samples in the order in which they
  /// are ready; 0: each batch contains the same samples as in the run. Pipelines of items use the
  /// recorded number of items instead.
  std::size_t ready_samples = 0;
  /// The operation or stage whose results are kept for the epochs after the first; "": none.
  std::string cache;
  std::set<std::string> cached;  ///< operations and stages that a cached result replaces
  bool cached_reads = false;     ///< whether the page cache contains all files
  /// For each operation that waits for the disk: share (0..1) of its blocked time. Set with
  /// cached_reads.
  std::map<std::string, double> disk_waits;
  moved_operation order;
  /// Operations and stages that other machines or an accelerator execute. They take no time here.
  std::set<std::string> offload;
  /// Whether the threads wait for offloaded work for as long as it took on the CPU.
  bool offload_waits = false;
  /// Number of CPUs on which the threads of the loader may run; the consumer has one of its own.
  std::optional<std::size_t> loader_cpus;

  bool operator==(const pipeline_change& other) const;
};

/// Returns the least effect of a change whose effect the recording only bounds: threads wait for
/// offloaded work, and the page cache contained the files already.
pipeline_change least_effect(pipeline_change change);

/// Returns the most effect of such a change: reading from the page cache takes no CPU time either.
/// (It takes less than reading from a disk, but it is unknown how much less.)
pipeline_change most_effect(pipeline_change change);

/// Describes a random sample of a run's units (batches and items), see block_sampler. Element i is
/// the index of the recorded unit whose work unit i gets in the simulation. Empty: all units keep
/// their own work.
using drawn_units = std::vector<std::uint32_t>;

/// Returns the maximum number of threads that work in a stage at the same time after the change. A
/// stage that used all threads of a pool uses all threads of the changed pool. Other stages of a
/// pool, such as those that allow one thread at a time, keep their number.
std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage);

/// How the time of one element of recorded_pipeline::works divides, if a limit is assumed that
/// delayed the calls of an operation.
struct served_work {
  double blocked_ns = 0;  ///< time during which calls were served and blocked
  double cpu_ns = 0;      ///< time during which calls were served and ran on a CPU
  double waited_ns = 0;   ///< time during which calls waited for a server
  /// Time during which calls were served and waited for a CPU. This does not become shorter with a
  /// faster operation, because it depends on how often the thread is woken.
  double queued_ns = 0;
  std::uint32_t let_through = 0;  ///< number of calls that passed a rate limit
};

/// The served time of one operation.
struct served_operation {
  std::string name;  ///< name of the operation, without the S that logs put before it
  /// For each work in recorded_pipeline::works: its served part. It is stored, because its
  /// computation needs a pass over all calls of the operation.
  std::shared_ptr<const std::vector<served_work>> works;
};

/// An assumption about a bottleneck that delays calls of an operation. The bottleneck is one of:
/// - a lock or device that serves a limited number of calls at the same time
/// - a rate limit
/// - a lock that calls hold for a part of their time
struct assumed_servers {
  /// The operation whose calls are served from start to end. nullptr if calls are served only for a
  /// part of their time, or if there is no limit.
  const shared_operation* operation = nullptr;
  std::size_t servers = unbounded;  ///< maximum number of calls that are served at the same time
  /// For a rate limit: the minimum interval between the starts of two calls, and the time that each
  /// call takes after its start. 0 if there is no rate limit.
  double apart_ns = 0;
  double each_ns = 0;
  /// The operations that are served, or that wait to be served; empty if there is no limit. If
  /// calls are served from start to end, only `operation`. In the case of a lock, those that wait
  /// for it or hold it, the one that holds it longest first.
  std::vector<served_operation> served = {};

  /// Whether no calls delay each other.
  bool is_free() const noexcept { return served.empty(); }
};

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
