// Predicts the effect of a change to a run, with a confidence interval.
#ifndef LOTUS_TOOL_REPLAY_PREDICTION_HPP
#define LOTUS_TOOL_REPLAY_PREDICTION_HPP

#include <cstddef>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/cpu_budget.hpp"
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
};

/// Keeps predictions, because the same change is simulated for several parts of a diagnosis.
/// Thread-safe.
class known_guesses {
 public:
  std::optional<prediction> find(const pipeline_change& change) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [of, known] : all_) {
      if (of == change) return known;
    }
    return std::nullopt;
  }
  void add(const pipeline_change& change, const prediction& known) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.emplace_back(change, known);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<pipeline_change, prediction>> all_;
};

/// Predicts the effect of changes to a run. To do so, simulates the run with and without the
/// change. The simulation without the change shows how wrong the simulation is; predictions are
/// corrected by this error, for small changes completely and for large changes by about half.
/// Several threads may call functions whose names contain "guess" at the same time; no other
/// function is thread-safe.
class what_if {
 public:
  /// @param run         must outlive this object.
  /// @param recorded    the pipeline of `run`.
  /// @param also        nullptr, or the same pipeline recorded in another configuration, such as
  ///   with another number of workers. It helps to estimate how busy CPUs slow each other down and
  ///   which operations wait for each other.
  /// @param cpus        the number of CPUs that the run could use; needed only if the logs do not
  ///   contain this number. If the logs do not contain CPU times either, all preprocessing is
  ///   assumed to run on a CPU.
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus);
  what_if(const what_if&) = delete;
  what_if& operator=(const what_if&) = delete;

  /// Returns the measured throughput in batches per second over the whole run. Compare it with
  /// replayed(), the simulated throughput of the unmodified run, to see the error of the
  /// simulation.
  double achieved() const noexcept { return recorded_.achieved_per_s; }
  /// Returns the length of the recorded run in ns, computed from the number of simulated batches
  /// and the measured throughput.
  double run_ns() const noexcept {
    const double simulations =
        law_.law.turn_ns > 0 ? static_cast<double>(std::size(slice_factors)) : 1;
    return achieved() > 0 ? base_.batches / simulations * 1e9 / achieved() : 0;
  }
  double replayed() const noexcept { return replayed_per_s_; }
  /// Returns the share (0..1) of the CPUs that other programs used. The constructor determines it
  /// only if the simulation is faster than the run; otherwise it is 0. If the recording does not
  /// show that other programs used 10 % or more, the constructor first tries longer time slices. It
  /// assumes other programs only if the simulation is then still over 25 % too fast and threads
  /// waited for CPUs. fitted() returns the simulated throughput after these adjustments.
  double others_share() const noexcept { return others_share_; }
  double fitted() const noexcept { return base_.per_s(); }
  const estimated_law& law() const noexcept { return law_; }
  const recorded_pipeline& recorded() const noexcept { return recorded_; }

  bool cpus_known() const noexcept { return law_.law.cpus > 0; }
  /// Returns whether the prediction for `change` must include "no gain": the change adds threads,
  /// and it is unknown whether there are CPUs for them.
  bool is_bracket(const pipeline_change& change) const {
    return beyond_seen(change) && !cpus_known();
  }

  /// Returns whether the simulated throughput is wrong by more than 25 %, compared with the
  /// measured one. Predictions cannot be trusted in this case.
  bool is_unlike() const noexcept;

  /// Returns whether the changed run would have more threads than any recorded run, or another
  /// number of CPUs.
  bool beyond_seen(const pipeline_change& change) const;

  /// Predicts the effect of a change without a confidence interval (`high` is `per_s`, and `low` is
  /// at most `per_s`), which is ten times as fast as predict().
  prediction guess(const pipeline_change& change) const;
  /// Returns the gain that follows from the prediction `of` if the run's length does not include
  /// the pauses between epochs. No change shortens these pauses.
  double gain_between_pauses(const prediction& of) const;
  /// Returns the most pessimistic prediction: the one with the smallest gain among those under all
  /// possible explanations of the run's throughput.
  prediction min_guess(const pipeline_change& change) const;
  /// Like guess(), but assumes that calls do not wait for a lock or device, if the run can be
  /// explained without such waits.
  prediction unlimited_guess(const pipeline_change& change) const;
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
  prediction predict(const pipeline_change& change) const;

 private:
  /// Returns the measured length of the simulated part of the run, in ns.
  double length_ns() const;
  /// Returns the number of threads of all stages after a change.
  std::size_t threads_after(const pipeline_change& change) const;
  /// Simulates the run with a change. With time slices, a tiny difference can decide which thread
  /// runs next; therefore sums up the results for several lengths of slices to average out such
  /// effects. The simulated run lasts at least as long as the CPUs need for all CPU time.
  /// @param queued  whether the waits for a CPU count as blocked time, see queued_.
  replay_result replayed_with(const pipeline_change& change, const speed_law& law,
                              const assumed_servers& assumed, bool queued = false,
                              unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  replay_plan plan(const pipeline_change& change, const speed_law& law, const drawn_units& drawn,
                   const assumed_servers& assumed, bool queued) const;
  /// If the simulation is more than 10 % slower than the run, it may obey a rule that the run did
  /// not obey. Drops first round-robin dispatch, then the limits on batches in flight and in
  /// queues, each only if this at least halves the deviation of the simulation from the run.
  void loosen_policies();
  /// If the simulation is too fast, sets speed_law::turn_ns to a time slice with which it is as
  /// slow as the run.
  void fit_time_slice();
  /// Sets all_cpus_ to the number of CPUs, and workers_want_ and consumer_wants_ to how many of
  /// them the workers and the consumer would have used if they had never waited for a CPU.
  void find_wanted_cpus();
  /// Returns how many CPUs the run got at least, if the recording shows that other programs used
  /// many; otherwise 0.
  double fewest_cpus() const;
  /// Estimates how many CPUs the run got if other programs used the rest: the number of CPUs with
  /// which the simulation is as slow as the run.
  void fit_cpus();
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
  /// Returns how much the predicted gain depends on the batches that happened to be in the run: the
  /// standard deviation of the logarithm of the gain over random samples of these batches.
  double drawn_sd(const pipeline_change& change) const;
  /// A random sample of the run's batches, with a speed law that is varied at random, because its
  /// estimate is not exact. All changes are simulated with the same samples.
  struct drawn_run {
    drawn_units units;
    speed_law law;
    double before_per_s = 0;  ///< simulated throughput without a change
  };
  /// If another recorded run had the number of workers that `change` asks for, and nothing else
  /// changes, moves the prediction towards the throughput that this run had.
  void use_measurement(const pipeline_change& change, prediction& p) const;
  /// Draws the random samples of the run and stores them in drawn_.
  void draw_runs() const;
  /// Simulates a random sample of the run with a change. Returns the throughput in batches per
  /// second.
  double drawn_per_s(const pipeline_change& change, const speed_law& law,
                     const drawn_units& units) const;

  /// A possible explanation of the run's throughput: an assumption about which calls wait for each
  /// other, and the simulation of the unmodified run under this assumption.
  struct explanation {
    assumed_servers assumed;
    replay_result base;
    bool queued = false;  ///< whether to simulate queued_ instead of recorded_
  };
  /// Returns whether threads waited for CPUs, but for less than a fifth of their time.
  bool waits_little_for_cpus() const;
  /// `why` is a possible explanation of the run's throughput. If its simulation is too fast, counts
  /// waits for a CPU as blocked time, provided that the simulation then fits better. The reason: a
  /// thread that waits for a CPU also delays the threads that wait for its lock.
  void count_queueing(explanation& why);
  /// Finds the explanations under which the simulation reproduces the run, and also the run `also`
  /// if it is given.
  void find_explanations(const recorded_pipeline* also);
  void keep_what_explains(const recorded_pipeline& also);
  /// Returns whether operations inside recorded_pipeline::lock's operation wait for the lock too.
  bool several_wait_for_lock() const;
  /// Returns the operations that wait for the lock or hold it: only the lock's operation, or, if
  /// several wait, sampled_lock::users.
  std::vector<lock_user> lock_users() const;
  /// Returns the explanation of the run by this lock; nullptr if there is none.
  const assumed_servers* simulated_lock() const;
  /// Returns for how long operations waited for the lock, in ns.
  double lock_wait_ns() const;
  /// Returns assumptions about the lock that wait samples show: one with the estimated length of
  /// the waits for it, and one with each end of their 90 % confidence interval. Empty if there is
  /// no such lock.
  std::vector<assumed_servers> lock_holds() const;
  /// If wait samples show a lock, adds the assumptions of lock_holds() to `all`. Removes the
  /// assumptions in `all` that the samples contradict:
  /// - Calls do not delay each other.
  /// - Another limit delays an operation, although waits for the lock explain most of its blocked
  ///   time.
  /// - Calls hold the lock from start to end, although their waits would then be much longer or
  ///   shorter than the samples show.
  void assume_sampled_lock(std::vector<assumed_servers>& all) const;
  /// @param cpus  the number of CPUs to simulate; only used if other programs used CPUs.
  prediction guess_under(const explanation& why, const pipeline_change& change, double cpus,
                         unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  /// Returns a prediction for each possible explanation of the run's throughput, and for both ends
  /// of the range of CPUs that the changed run may get, without the one that guess() returns.
  std::vector<prediction> other_guesses(const pipeline_change& change) const;

  const run_data& run_;
  recorded_pipeline recorded_;
  // A copy of recorded_ in which waits for a CPU count as blocked time; nullopt until
  // count_queueing() needs it for the first time.
  std::optional<recorded_pipeline> queued_;
  std::vector<explanation> explanations_;  // most likely first; not empty after construction
  double others_share_ = 0;
  double all_cpus_ = 0;        // number of CPUs, with those that other programs used; 0: unknown
  double workers_want_ = 0;    // mean number of workers that ran or waited for a CPU
  double consumer_wants_ = 0;  // mean share of time in which the consumer ran or waited for a CPU
  cpu_budget budget_;
  std::size_t max_threads_ = 0;  // the maximum number of threads in a recorded run
  /// The throughput that another recorded run measured with its number of workers.
  struct other_run {
    std::optional<std::size_t> workers;
    double per_s = 0;  ///< 0: there is no such run
    double sd = 0;     ///< its relative standard error
  };
  other_run measured_also_;
  estimated_law law_;
  /// If threads share CPUs in time slices (speed_law::turn_ns), replayed_with() simulates the run
  /// with the fitted length of a slice times each of these factors, and adds up the results. With a
  /// single length, a tiny difference could decide which thread runs next.
  static constexpr double slice_factors[] = {0.8, 1.0, 1.25};

  replay_result base_;
  double replayed_per_s_ = 0;
  mutable known_guesses guesses_;         // what guess() returned
  mutable std::vector<drawn_run> drawn_;  // empty until drawn_sd() needs it for the first time
  double run_sd_ = 0;  // standard deviation of the logarithm of the throughput between runs
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
