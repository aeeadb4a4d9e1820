// Estimates from recorded runs how much busy CPUs slow each other down, and how many CPUs a run
// got.
#ifndef LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
#define LOTUS_TOOL_REPLAY_SPEED_LAW_HPP

#include <cstdint>
#include <vector>

#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

struct estimated_law {
  speed_law law;
  double slowing_sd = 0;  ///< standard deviation of speed_law::slowing
  /// Mean number of busy CPUs during the tenth of the work with the most busy CPUs.
  double max_busy = 0;
  /// Whether the load of the CPUs varied enough to estimate speed_law::slowing from the runs.
  bool levels_seen = false;
};

/// Estimates the speed law: how much longer work takes while other CPUs are busy. Fits a line to
/// the CPU time of the work on a batch or item, relative to the mean of the stage, as a function of
/// the share of other CPUs that were busy. Combines the slope with a typical value of 6 ± 8 % (two
/// hyperthreads of one core slow each other down most).
///
/// Long work overlaps with more other work just because it is long, which would distort the slope.
/// The fit therefore uses an instrumental variable (Angrist and Pischke, Mostly Harmless
/// Econometrics, ch. 4): how busy the other CPUs were in the first moments of the work, which does
/// not depend on its length.
/// @param pipelines  recorded runs of one pipeline.
/// @param cpus       the number of CPUs that the runs could use; 0: unknown.
estimated_law estimate_speed(const std::vector<const recorded_pipeline*>& pipelines, double cpus);

/// What happens to recorded_pipeline::unrecorded_cpu_ns if the run changes: threads without markers
/// need as much CPU time for each batch as before, or (the other extreme) none.
enum class unrecorded_cpu : std::uint8_t { stays, vanishes };

/// The CPU time that a run needs. A simulated run must last at least as long as all CPUs together
/// need for this CPU time.
class cpu_budget {
 public:
  /// Without limits.
  cpu_budget() = default;
  /// @param planned    the plan of the unmodified run.
  /// @param length_ns  measured length of the simulated part of the run.
  cpu_budget(const recorded_pipeline& recorded, const replay_plan& planned, double length_ns);

  /// Returns whether the run used much CPU time outside the recorded work. Predictions then depend
  /// on how this CPU time changes, which is unknown.
  bool much_is_unrecorded() const noexcept;

  /// Returns how long the CPUs need for all CPU time of a planned run, in ns, if all of them are
  /// always busy.
  double least_length_ns(const replay_plan& planned, unrecorded_cpu unrecorded) const;

  /// Simulates a planned run, and extends the result to at least least_length_ns() if it is
  /// shorter.
  replay_result replay_within(const replay_plan& planned, unrecorded_cpu unrecorded) const;

 private:
  double recorded_ns_ = 0;
  double unrecorded_ns_ = 0;
  double busy_cpus_ = 0;  // mean number of CPUs that the recorded run kept busy
  // A factor in least_length_ns(), at most 1. It makes sure that the minimum length computed for
  // the unmodified run does not exceed the measured length of this run.
  double scale_ = 1;
};

/// Returns the factor (at most 1) by which the throughput may be lower than simulated if more
/// threads share the busy CPUs than in any recorded run. The simulation ignores the cost of
/// switching between threads, and that threads displace each other's data from the caches. Real
/// loaders lost 0 to 8 % each time the number of threads per CPU doubled.
/// @param threads   number of threads of the simulated run.
/// @param recorded  largest number of threads of a recorded run.
double loss_of_crowding(double threads, double recorded, double cpus);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_SPEED_LAW_HPP
