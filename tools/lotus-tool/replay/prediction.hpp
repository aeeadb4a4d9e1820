// Predicts the effect of a change to a run, with a confidence interval.
#ifndef LOTUS_TOOL_REPLAY_PREDICTION_HPP
#define LOTUS_TOOL_REPLAY_PREDICTION_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
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
  /// Like steady_per_s, but from the slope of a line fitted to the times of all receptions (see
  /// trend). Use it only to compare simulations of one run.
  double trend_per_s = 0;
  /// Run length without the change, divided by run length with the change.
  double gain = 1;
  /// The maximum number of batches in flight, which determines the memory use.
  std::size_t max_out = 0;
};

/// Predicts the effect of changes to a run by simulating the run with and without the change. The
/// simulation of the unmodified run shows the simulation's error. Predictions of small changes are
/// corrected by all of this error, those of large changes by about half of it. Not thread-safe.
class what_if {
 public:
  /// @param run         must outlive this object.
  /// @param recorded    the pipeline of `run`.
  /// @param also        nullptr, or the same pipeline recorded in another configuration, such as
  /// with another number of workers. It helps to estimate how busy CPUs slow each other down
  /// and which operations wait for each other.
  /// @param cpus        the number of CPUs that the run could use; needed only if the logs do not
  ///   contain this number. If the logs do not contain CPU time either, all preprocessing is
  ///   assumed to be on the CPU.
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus);
  what_if(const what_if&) = delete;
  what_if& operator=(const what_if&) = delete;

  /// Returns the measured throughput in batches per second over the whole run. replayed() returns
  /// the simulated throughput of the unmodified run.
  double achieved() const noexcept { return recorded_.achieved_per_s; }
  /// Returns the length of the run in ns: the number of simulated batches divided by the measured
  /// throughput.
  double run_ns() const noexcept {
    const double simulations =
        law_.law.turn_ns > 0 ? static_cast<double>(std::size(slice_factors)) : 1;
    return achieved() > 0 ? base_.batches / simulations * 1e9 / achieved() : 0;
  }
  double replayed() const noexcept { return replayed_per_s_; }
  /// Returns the share of the CPUs that other programs used, 0..1. The constructor estimates it: if
  /// the simulation is faster than the run, the constructor first tries longer time slices
  /// (law().law.turn_ns). If the simulation is then still over 25 % too fast although threads
  /// waited for CPUs, it concludes that other programs used some CPUs. fitted() returns the
  /// simulated throughput after these adjustments.
  double others_share() const noexcept { return others_share_; }
  double fitted() const noexcept { return base_.per_s(); }
  const estimated_law& law() const noexcept { return law_; }
  const recorded_pipeline& recorded() const noexcept { return recorded_; }

  bool cpus_known() const noexcept { return law_.law.cpus > 0; }
  /// Returns whether "no gain" must be the lower end of a prediction, because the change uses more
  /// threads than the recorded runs and the number of CPUs is unknown.
  bool is_bracket(const pipeline_change& change) const {
    return beyond_seen(change) && !cpus_known();
  }

  /// Returns whether the simulated throughput differs from the measured one by over 25 %. Then
  /// predictions cannot be trusted.
  bool is_unlike() const noexcept;

  /// Returns whether the changed run would have more threads, or other CPUs, than any recorded run.
  bool beyond_seen(const pipeline_change& change) const;

  /// Predicts without a confidence interval (low and high equal per_s), ten times as fast.
  prediction guess(const pipeline_change& change) const;
  /// Returns prediction::gain without the pauses between epochs, which no change shortens.
  double gain_between_pauses(const prediction& of) const;
  /// Returns the prediction with the smallest gain among all explanations of the recording.
  prediction min_guess(const pipeline_change& change) const;
  /// Like guess(), but assumes that no call waits for a lock or device, if the recordings can be
  /// explained without such waits.
  prediction unlimited_guess(const pipeline_change& change) const;
  /// An operation that waits for a lock or a device under every explanation of the recording, so
  /// more workers do not help. `most` is the maximum number of its calls that are served at the
  /// same time. If no operation is limited, `name` is "".
  struct limited_operation {
    std::string name;
    std::size_t most = 0;
  };
  limited_operation limited() const;
  prediction predict(const pipeline_change& change) const;

 private:
  /// What happens to recorded_pipeline::unrecorded_cpu_ns if the run changes: threads without
  /// markers need as much CPU time for each batch as before, or (the other extreme) none.
  enum class unrecorded_cpu : std::uint8_t { stays, vanishes };
  /// Limits recorded_.unrecorded_cpu_ns to what the CPUs can do during the run. More is reported if
  /// the number of CPUs is wrong.
  void leave_out_impossible_cpu_time();
  /// Returns whether the run used so much CPU time outside the recorded work that it matters how
  /// this changes.
  bool much_is_unrecorded() const;
  /// Simulates the run with a change. With time slices, small differences decide which thread runs
  /// next. To average this out, the function sums up the results for several lengths of slices.
  /// The simulated run lasts at least as long as the CPUs need for all CPU time.
  replay_result replayed_with(const pipeline_change& change, const speed_law& law,
                              const assumed_servers& assumed, bool queued = false,
                              unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  replay_plan plan(const pipeline_change& change, const speed_law& law, const drawn_units& drawn,
                   const assumed_servers& assumed, bool queued) const;
  /// A simulation that is slower than the run may obey a rule that the run did not obey. Drops each
  /// of two rules if this brings the simulation closer to the run: round-robin dispatch to the
  /// workers, and the limit on the batches in flight.
  void loosen_policies();
  /// Sets speed_law::turn_ns to the time slice with which the simulation is as slow as the run.
  void fit_time_slice();
  void find_wanted_cpus();
  /// Takes from the recording how many CPUs other programs left to the run, if they used many.
  void take_measured_cpus();
  /// Estimates how many CPUs other programs left to the run: the number with which the simulation
  /// is as slow as the run.
  void fit_cpus();
  /// A range for the number of CPUs available to the changed run; see cpus_with().
  struct cpu_range {
    double low = 0;
    double high = 0;
  };
  /// Returns how many CPUs the changed run gets if other programs always use CPUs. One end of the
  /// range is what the recorded run got. The other end is a fair share (Li et al., "Efficient and
  /// scalable multiprocessor fair scheduling", PPoPP 2009): n of n + m threads that want a CPU get
  /// n / (n + m) of all CPUs.
  cpu_range cpus_with(const pipeline_change& change) const;
  /// Returns the standard deviation of the logarithm of the gain over random samples of the run's
  /// batches.
  double drawn_sd(const pipeline_change& change) const;

  /// An assumption about which calls wait for each other, and the unmodified run simulated with it.
  struct explanation {
    assumed_servers assumed;
    replay_result base;
    bool queued = false;  ///< whether to simulate queued_ instead of recorded_
  };
  /// Returns whether threads waited for CPUs, but for less than a fifth of their time.
  bool waits_little_for_cpus() const;
  /// Counts waits for a CPU as blocked time if the simulation is too fast, and this explains why. A
  /// thread that waits for a CPU delays those that need its lock, and other programs make threads
  /// wait whenever they are woken.
  void count_queueing(explanation& why);
  /// Finds the explanations with which the simulation reproduces the run, and `also` if given.
  void find_explanations(const recorded_pipeline* also);
  void keep_what_explains(const recorded_pipeline& also);
  /// @param cpus  the number of CPUs to simulate if other programs used CPUs; otherwise ignored.
  prediction guess_under(const explanation& why, const pipeline_change& change, double cpus,
                         unrecorded_cpu unrecorded = unrecorded_cpu::stays) const;
  /// Calls on_guess(prediction) for each explanation and each end of the range of CPUs.
  template <class OnGuess>
  void for_each_guess(const pipeline_change& change, OnGuess&& on_guess) const;

  const run_data& run_;
  recorded_pipeline recorded_;
  // A copy of recorded_ in which waits for a CPU count as blocked time. Created when needed.
  std::optional<recorded_pipeline> queued_;
  std::vector<explanation> explanations_;  // most likely first; not empty after construction
  double others_share_ = 0;
  double all_cpus_ = 0;      // number of CPUs including those that other programs used; 0: unknown
  double workers_want_ = 0;  // mean number of workers that ran or waited for a CPU
  double consumer_wants_ = 0;    // mean share of time in which the consumer ran or waited for a CPU
  std::size_t max_threads_ = 0;  // the maximum number of threads in a recorded run
  estimated_law law_;
  /// With time slices, the results of simulations with slices of these relative lengths are added.
  static constexpr double slice_factors[] = {0.8, 1.0, 1.25};

  replay_result base_;
  double replayed_per_s_ = 0;
  double run_sd_ = 0;  // standard deviation of the logarithm of the throughput between runs
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
