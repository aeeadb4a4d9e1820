// Predicts the effect of a change, with a confidence interval.
#ifndef LOTUS_TOOL_REPLAY_PREDICTION_HPP
#define LOTUS_TOOL_REPLAY_PREDICTION_HPP

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
  double low = 0;    ///< lower end of its 90 % confidence interval
  double high = 0;
  double run_ns = 0;        ///< length of the run, from the first work to the end of the last step
  double steady_per_s = 0;  ///< batches per second from an epoch's first reception to its last
  double gain = 1;          ///< run length before ÷ after
  /// The maximum number of batches in flight, which determines the memory use.
  std::size_t most_out = 0;
};

/// Answers questions about a run. Predictions are corrected by the simulation's error on the
/// unmodified run: completely for small changes, by half for large ones. Thread safety: one thread.
class what_if {
 public:
  /// @param run         must outlive this.
  /// @param recorded    the pipeline of `run`.
  /// @param also        nullptr, or the same pipeline in another configuration, which shows more
  ///                    about the machine.
  /// @param cpus        CPUs that the run could use, if its logs do not contain this. If they do
  ///                    not contain CPU time either, all preprocessing is then assumed to be on the
  ///                    CPU.
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus);
  what_if(const what_if&) = delete;
  what_if& operator=(const what_if&) = delete;

  /// Batches per second over the whole run, as measured. replayed() is the same, simulated.
  double achieved() const noexcept { return recorded_.achieved_per_s; }
  /// Length of the run: the time that the simulated batches took at the measured throughput.
  double run_ns() const noexcept { return achieved() > 0 ? base_.batches * 1e9 / achieved() : 0; }
  double replayed() const noexcept { return replayed_per_s_; }
  /// If the simulation is too fast, it is slowed down by CPUs that stay idle for a while
  /// (law().law.turn_ns). If it is still over 25 % too fast while threads waited for CPUs, other
  /// programs used the CPUs: this share of them, 0..1. Work is conserved: more workers do not get
  /// more out of the remaining CPUs. fitted() is the simulated throughput after these adjustments.
  double others_share() const noexcept { return others_share_; }
  double fitted() const noexcept { return base_.per_s(); }
  const estimated_law& law() const noexcept { return law_; }
  const recorded_pipeline& recorded() const noexcept { return recorded_; }

  /// Whether the number of CPUs for the run's threads is known.
  bool cpus_known() const noexcept { return law_.law.cpus > 0; }
  /// Whether a prediction can only give a range that begins with "no gain", because there may be no
  /// CPU for additional threads.
  bool is_bracket(const pipeline_change& change) const {
    return beyond_seen(change) && !cpus_known();
  }

  /// Whether the simulation differs from the run by so much, over 25 %, that it cannot be trusted.
  bool is_unlike() const noexcept;

  /// Whether more threads would want CPUs at once than in the recorded runs.
  bool beyond_seen(const pipeline_change& change) const;

  /// Predicts without an interval (low and high equal per_s), in a tenth of the time.
  prediction guess(const pipeline_change& change) const;
  /// The same gain, but for the part of the run that the loader affects: without the pauses between
  /// epochs.
  double gain_between_pauses(const prediction& of) const;
  /// The prediction with the smallest gain, of all explanations that fit the recording.
  prediction least_guess(const pipeline_change& change) const;
  /// The operation that demonstrably waits for a lock or a device, so that more workers do not
  /// help; its name is "" if there is none. `most`: the number of its calls that are served at
  /// once.
  struct limited_operation {
    std::string name;
    std::size_t most = 0;
  };
  limited_operation limited() const;
  prediction predict(const pipeline_change& change) const;

 private:
  /// If threads take turns, small differences decide which thread is next, so this sums up the
  /// results for several lengths of turns.
  replay_result replayed_with(const pipeline_change& change, const speed_law& law,
                              const assumed_servers& assumed, bool queued = false) const;
  replay_plan plan(const pipeline_change& change, const speed_law& law, const drawn_units& drawn,
                   const assumed_servers& assumed, bool queued) const;
  /// Work that was not recorded cannot make a simulation slower than the run, but a rule that did
  /// not hold can: dispatch in turn, or a bound on the batches in flight. Drops the rules without
  /// which the simulation is closer to the run.
  void loosen_policies();
  /// Finds the speed_law::turn_ns with which the simulation is as slow as the run.
  void fit_turns();
  /// Finds the number of CPUs, not used by other programs, with which the simulation is as slow as
  /// the run.
  void fit_cpus();
  /// The number of CPUs available to the changed run, as a range; see cpus_with().
  struct cpu_range {
    double low = 0;
    double high = 0;
  };
  /// If other programs always want CPUs: between the number of CPUs obtained before and a fair
  /// share (Li et al., "Efficient and scalable multiprocessor fair scheduling", PPoPP 2009), in
  /// which n of n + m threads that want a CPU get n / (n + m) of all.
  cpu_range cpus_with(const pipeline_change& change) const;
  /// Standard deviation of the logarithm of the gain over resampled runs.
  double drawn_sd(const pipeline_change& change) const;

  /// A possible explanation of the recording, and the simulation of the unmodified run under it.
  struct explanation {
    assumed_servers assumed;
    replay_result base;
    bool queued = false;  ///< the waiting for CPUs is taken from the recording
  };
  /// Whether threads waited for CPUs, but too little to explain the run by that alone.
  bool waits_little_for_cpus() const;
  /// Finds the explanations that reproduce the run, and the other run too.
  void find_explanations(const recorded_pipeline* also);
  void keep_what_explains(const recorded_pipeline& also);
  /// @param cpus  used instead of those of law_ if other programs had some of the CPUs.
  prediction guess_under(const explanation& why, const pipeline_change& change, double cpus) const;
  /// Calls on_guess(prediction) for each explanation and each end of the range of CPUs.
  template <class OnGuess>
  void for_each_guess(const pipeline_change& change, OnGuess&& on_guess) const;

  const run_data& run_;
  recorded_pipeline recorded_;
  // recorded_, with waiting for CPUs counted as blocked time.
  std::optional<recorded_pipeline> queued_;
  std::vector<explanation> explanations_;  // most likely first; never empty
  double others_share_ = 0;
  double all_cpus_ = 0;           // of the machine, including those that other programs used
  double workers_want_ = 0;       // mean number of worker threads that ran or waited for a CPU
  double consumer_wants_ = 0;     // likewise, the consumer
  std::size_t most_threads_ = 0;  // the maximum over all runs
  estimated_law law_;
  replay_result base_;
  double replayed_per_s_ = 0;
  double run_sd_ = 0;  // of the logarithm of the throughput, between runs
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
