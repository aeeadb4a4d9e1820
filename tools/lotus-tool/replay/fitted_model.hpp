// What a recorded run shows: the simulation, fitted to the run.
#ifndef LOTUS_TOOL_REPLAY_FITTED_MODEL_HPP
#define LOTUS_TOOL_REPLAY_FITTED_MODEL_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {

struct prediction {
  double per_s = 0;  ///< batches per second of the whole run
  double low = 0;    ///< lower end of the 90 % confidence interval of per_s
  double high = 0;
  double run_ns = 0;        ///< run length in ns, from the first work to the end of the last step
  double steady_per_s = 0;  ///< batches per second between an epoch's first and last reception
  /// The throughput in steady state, like steady_per_s, but less noisy: the slope of a line through
  /// the times of all received batches (see trend). Use it only to compare simulations of one run.
  double trend_per_s = 0;
  /// Run length without the change, divided by run length with the change.
  double gain = 1;
  /// The maximum number of batches in flight. It determines how much memory the batches need.
  std::size_t max_out = 0;
  double cpus_busy = 0;  ///< at least this share (0..1) of the time of all CPUs is used
  /// An operation that may make the changed run longer than simulated, see length_bound; "": there
  /// is none. The interval contains the throughput that it may limit the run to.
  std::string bounded_by{};
  double bounded_per_s = 0;
  bool bounded_by_rate = false;  ///< see length_bound::is_rate
};

/// A possible explanation of the run's throughput: an assumption about which calls wait for each
/// other, and the simulation of the unmodified run under this assumption.
struct explanation {
  assumed_servers assumed;
  replay_result base;
  bool queued = false;  ///< whether to simulate fitted_model::with_queues
};

/// A run as it can be simulated with and without changes. fit_model() computes it; it never changes
/// after that, so all functions are thread-safe.
struct fitted_model {
  fitted_model() = default;
  fitted_model(const fitted_model&) = delete;  // explanations refer to the pipeline
  fitted_model& operator=(const fitted_model&) = delete;
  fitted_model(fitted_model&&) noexcept = default;
  fitted_model& operator=(fitted_model&&) noexcept = default;
  ~fitted_model() = default;

  /// Returns the measured throughput in batches per second over the whole run. Compare it with
  /// replayed(), the simulated throughput of the unmodified run, to see the error of the
  /// simulation.
  double achieved() const noexcept { return pipeline.achieved_per_s; }
  /// Returns the length of the recorded run in ns, computed from the number of simulated batches
  /// and the measured throughput.
  double run_ns() const noexcept;
  double replayed() const noexcept { return replayed_per_s; }
  /// Returns the share (0..1) of the CPUs that other programs used. It is determined
  /// only if the simulation is faster than the run; otherwise it is 0. If the recording does not
  /// show that other programs used 10 % or more, longer time slices are tried first. Other
  /// programs are assumed only if the simulation is then still over 25 % too fast and threads
  /// waited for CPUs. fitted() returns the simulated throughput after these adjustments.
  double others_share() const noexcept { return share_of_others; }
  double fitted() const noexcept { return base.per_s(); }
  const estimated_law& law() const noexcept { return speed; }
  const recorded_pipeline& recorded() const noexcept { return pipeline; }
  bool cpus_known() const noexcept { return speed.law.cpus > 0; }
  /// Returns whether the simulated throughput is wrong by more than 25 %, compared with the
  /// measured one. Predictions cannot be trusted in this case.
  bool is_unlike() const noexcept;
  /// Returns whether the changed run would have more threads than any recorded run, or another
  /// number of CPUs.
  bool beyond_seen(const pipeline_change& change) const;
  /// Returns whether the prediction for `change` must include "no gain": the change adds threads,
  /// and it is unknown whether there are CPUs for them.
  bool is_bracket(const pipeline_change& change) const {
    return beyond_seen(change) && !cpus_known();
  }
  /// The operation that makes more workers useless, because its calls wait for a lock or a device.
  /// Set only if all models that reproduce the run contain such waits (see `explanation`). `most`
  /// is the maximum number of its calls that are served at the same time. `name` is "" if there is
  /// no such operation.
  struct limited_operation {
    std::string name;
    std::size_t most = 0;
  };
  limited_operation limited() const;
  /// The operation that holds recorded_pipeline::lock longest in the simulation, and for how long,
  /// as a share (0..1) of the operation's time without waits for the lock.
  struct lock_holder {
    std::string name;
    double share = 0;
  };
  /// Returns nullopt if the simulation contains no such lock.
  std::optional<lock_holder> lock_held() const;
  /// Returns whether several operations wait for recorded_pipeline::lock, and the simulation cannot
  /// contain this lock, because it is unknown which operations hold it, or because the simulation
  /// would then differ from the run.
  bool has_unknown_lock() const;
  /// Returns the factor by which the run would be faster at most if no operation waited for the
  /// lock any more; 1 unless has_unknown_lock(). Faster work under the lock may gain so much.
  double gain_without_lock_waits() const;

  /// Returns the measured length of the simulated part of the run, in ns.
  double length_ns() const;
  /// Returns the number of threads of all stages after a change.
  std::size_t threads_after(const pipeline_change& change) const;
  /// Returns how many CPUs the run got at least, if the recording shows that other programs used
  /// many; otherwise 0.
  double fewest_cpus() const;
  /// The lowest and highest number of CPUs that the changed run may get; see cpus_with().
  struct cpu_range {
    double low = 0;
    double high = 0;
  };
  /// Returns how many CPUs the changed run gets while other programs use CPUs. One end of the range
  /// is the number that the recorded run got. The other end is a fair share (Li et al., "Efficient
  /// and scalable multiprocessor fair scheduling", PPoPP 2009): if n of n + m threads that want a
  /// CPU belong to the run, it gets n / (n + m) of all CPUs.
  cpu_range cpus_with(const pipeline_change& change) const;
  /// Returns how many times as much CPU time per second a change lets the same threads want: after
  /// a wait for something else becomes shorter, they process more batches if they get all CPUs.
  double wants_more(pipeline_change change) const;
  replay_plan plan(const pipeline_change& change, const speed_law& law, const drawn_units& drawn,
                   const assumed_servers& assumed, bool queued) const;
  /// Simulates the run with a change. With time slices, a tiny difference can decide which thread
  /// runs next; therefore sums up the results for several lengths of slices to average out such
  /// effects. The simulated run lasts at least as long as the CPUs need for all CPU time.
  /// @param queued  whether the waits for a CPU count as blocked time, see with_queues.
  replay_result replayed_with(const pipeline_change& change, const speed_law& law,
                              const assumed_servers& assumed, bool queued = false,
                              unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  /// Predicts the effect of a change under one explanation, without a confidence interval.
  /// @param cpus  the number of CPUs to simulate; only used if other programs used CPUs.
  prediction guess_under(const explanation& why, const pipeline_change& change, double cpus,
                         unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  /// Predicts the effect of a change without a confidence interval (`high` is `per_s`, and `low` is
  /// at most `per_s`), which is ten times as fast as what_if::predict().
  prediction guess(const pipeline_change& change) const;
  /// Like guess(), but assumes that calls do not wait for a lock or device, if the run can be
  /// explained without such waits.
  prediction unlimited_guess(const pipeline_change& change) const;
  /// Returns the smallest gain under all possible explanations of the run's throughput.
  /// @param likely  the gain according to guess().
  double min_gain(const pipeline_change& change, double likely) const;
  /// Returns the gain that follows from the prediction `of` if the run's length does not include
  /// the pauses between epochs. No change shortens these pauses.
  double gain_between_pauses(const prediction& of) const;

  /// Returns assumptions about the lock that wait samples show: that calls hold it from start to
  /// end, if the samples allow this; then one with the estimated length of the waits for it, and
  /// one with each end of their 90 % confidence interval. Empty if there is no such lock.
  std::vector<assumed_servers> sampled_explanations() const;
  /// Returns whether waits for this lock explain most of the blocked time of an operation, so that
  /// no other limit needs to be assumed for it, or whether operations inside it use the lock.
  bool samples_explain(const shared_operation& op) const;

  const name_table* names = nullptr;
  recorded_pipeline pipeline;  ///< without rules that the run did not obey
  /// A copy of `pipeline` in which waits for a CPU count as blocked time, if an explanation needs
  /// it.
  std::optional<recorded_pipeline> with_queues;
  estimated_law speed;
  cpu_budget budget;
  replay_result base;                     ///< the simulation of the unmodified run
  double replayed_per_s = 0;              ///< its throughput before it was fitted
  std::vector<explanation> explanations;  ///< most likely first; not empty
  double share_of_others = 0;
  double all_cpus = 0;          ///< number of CPUs, with those that other programs used; 0: unknown
  double workers_want = 0;      ///< mean number of workers that ran or waited for a CPU
  double consumer_wants = 0;    ///< mean share of time in which the consumer ran or waited for one
  std::size_t max_threads = 0;  ///< the maximum number of threads in a recorded run
  /// The throughput that another recorded run measured with its number of workers.
  struct other_run {
    std::optional<std::size_t> workers;
    double per_s = 0;  ///< 0: there is no such run
    double sd = 0;     ///< its relative standard error
  };
  other_run measured_also;
  double run_sd = 0;  ///< standard deviation of the logarithm of the throughput between runs
};

/// Fits the simulation to a run. If the simulation is more than 10 % slower than the run, it may
/// obey a rule that the run did not obey: drops first round-robin dispatch, then the limits on
/// batches in flight and in queues, each only if this at least halves the deviation. If the
/// simulation is too fast, fits the length of time slices or the number of CPUs. Then finds the
/// explanations under which the simulation reproduces the run, and also the run `also`.
/// @param run         must outlive the result.
/// @param recorded    the pipeline of `run`.
/// @param also        nullptr, or the same pipeline recorded in another configuration, such as
///   with another number of workers. It helps to estimate how busy CPUs slow each other down and
///   which operations wait for each other.
/// @param cpus        the number of CPUs that the run could use; needed only if the logs do not
///   contain this number. If the logs do not contain CPU times either, all preprocessing is
///   assumed to run on a CPU.
fitted_model fit_model(const run_data& run, recorded_pipeline recorded,
                       const recorded_pipeline* also, std::optional<double> cpus);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_FITTED_MODEL_HPP
