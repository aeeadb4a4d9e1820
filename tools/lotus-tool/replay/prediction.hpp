// What a change would bring, and how sure that is.
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
  double per_s = 0;  ///< batches, over the run's whole length
  double low = 0;    ///< of the interval in which it lies with 90 % confidence
  double high = 0;
  double run_ns = 0;         ///< length of the run, from its first work to the end of its last step
  double steady_per_s = 0;   ///< batches, from the first hand-over of an epoch to the last
  double gain = 1;           ///< length before ÷ after
  std::size_t most_out = 0;  ///< batches that are out at once: what takes memory
};

/// A run that can be asked. What the replay of the run as it was gets wrong is taken out of every
/// answer: all of it near that run, half of it far away. Thread safety: one thread.
class what_if {
 public:
  /// @param run         must outlive this.
  /// @param recorded    of it.
  /// @param also        of the same pipeline, in another configuration: tells more of the machine.
  /// @param cpus        that the run might use, where its logs do not say. Where they do not tell
  /// CPU
  ///                    time either, all preprocessing is then taken to be on the CPU.
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus);
  what_if(const what_if&) = delete;
  what_if& operator=(const what_if&) = delete;

  /// Batches per second as the run was, over its whole length, and as its replay says.
  double achieved() const noexcept { return recorded_.achieved_per_s; }
  /// Length of the run: what the batches that are replayed took at that rate.
  double run_ns() const noexcept { return achieved() > 0 ? base_.batches * 1e9 / achieved() : 0; }
  double replayed() const noexcept { return replayed_per_s_; }
  /// A replay that is too fast leaves CPUs idle for a while (law().law.turn_ns). Where
  /// it is still over 25 % too fast while threads waited for CPUs, other programs had these: this
  /// share of them; 0..1. Work is conserved: no number of workers gets more out of the CPUs that
  /// are left. Then the replay says fitted().
  double others_share() const noexcept { return others_share_; }
  double fitted() const noexcept { return base_.per_s(); }
  const estimated_law& law() const noexcept { return law_; }
  const recorded_pipeline& recorded() const noexcept { return recorded_; }

  /// Whether it is known what CPUs were there for the run's threads.
  bool cpus_known() const noexcept { return law_.law.cpus > 0; }
  /// Whether an answer is a bracket, from no gain on: there may be no CPU for what it adds.
  bool is_bracket(const pipeline_change& change) const {
    return beyond_seen(change) && !cpus_known();
  }

  /// Whether the replay is so unlike the run, by over 25 %, that nothing may rest on it.
  bool is_unlike() const noexcept;

  /// Whether threads would want the CPU at once in a number that the runs have not shown.
  bool beyond_seen(const pipeline_change& change) const;

  /// Without an interval, so a tenth of the time: per_s, gain and most_out.
  prediction guess(const pipeline_change& change) const;
  /// The same gain of what the loader has a part in: of the run without the pauses between epochs.
  double gain_between_pauses(const prediction& of) const;
  /// That under which the change gains least, of all that the recording leaves open.
  prediction least_guess(const pipeline_change& change) const;
  /// The operation that is shown to wait for a lock or a device, so that more workers do not help;
  /// its name is "" where there is none. `most`: so many of its calls are served at once.
  struct limited_operation {
    std::string name;
    std::size_t most = 0;
  };
  limited_operation limited() const;
  prediction predict(const pipeline_change& change) const;

 private:
  /// Where threads take turns, who is next hangs on little: of turns of several lengths, together.
  replay_result replayed_with(const pipeline_change& change, const speed_law& law,
                              const assumed_servers& assumed, bool queued = false) const;
  replay_plan plan(const pipeline_change& change, const speed_law& law, const drawn_units& drawn,
                   const assumed_servers& assumed, bool queued) const;
  /// Missing work cannot make a replay slower than the run, but a rule can that did not hold:
  /// dispatch in turn, and bounds of what is in flight. Drops those without which the replay is
  /// more like the run.
  void loosen_policies();
  /// speed_law::turn_ns, with which the replay is as slow as the run.
  void fit_turns();
  /// The CPUs that were left by other programs, with which the replay is as slow as the run.
  void fit_cpus();
  /// CPUs for the run with a change, as far as its threads say it; see cpus_with().
  struct cpu_range {
    double low = 0;
    double high = 0;
  };
  /// Beside other programs that want CPUs all the time: as many as were obtained, or a fair share
  /// (Li et al., "Efficient and scalable multiprocessor fair scheduling", PPoPP 2009): n of n + m
  /// threads that want one get n / (n + m) of all.
  cpu_range cpus_with(const pipeline_change& change) const;
  /// Standard deviation of the logarithm of the gain in samples drawn anew.
  double drawn_sd(const pipeline_change& change) const;

  /// A way to explain the recording, and the run as it was under it.
  struct explanation {
    assumed_servers assumed;
    replay_result base;
    bool queued = false;  ///< waiting for CPUs stays as it was recorded
  };
  /// Whether threads waited for CPUs, but so little that it explains nothing by itself.
  bool waits_little_for_cpus() const;
  /// Those under which the run comes out as it was, and the other run too.
  void find_explanations(const recorded_pipeline* also);
  void keep_what_explains(const recorded_pipeline& also);
  /// @param cpus  of law_, unless other programs had some.
  prediction guess_under(const explanation& why, const pipeline_change& change, double cpus) const;
  /// Calls on_guess(prediction) for each explanation, and each number of CPUs that there may be.
  template <class OnGuess>
  void for_each_guess(const pipeline_change& change, OnGuess&& on_guess) const;

  const run_data& run_;
  recorded_pipeline recorded_;
  std::optional<recorded_pipeline> queued_;  // recorded_, whose waiting for CPUs is blocked time
  std::vector<explanation> explanations_;    // the likeliest first; never empty
  double others_share_ = 0;
  double all_cpus_ = 0;           // that there are, for others too
  double workers_want_ = 0;       // threads that ran or waited for a CPU, in the mean
  double consumer_wants_ = 0;     // likewise, of the time
  std::size_t most_threads_ = 0;  // that worked in any of the runs
  estimated_law law_;
  replay_result base_;
  double replayed_per_s_ = 0;
  double run_sd_ = 0;  // of the logarithm of the rate, from one run to the next
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
