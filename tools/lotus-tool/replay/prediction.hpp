// Predicts the effect of a change to a run, with a confidence interval.
#ifndef LOTUS_TOOL_REPLAY_PREDICTION_HPP
#define LOTUS_TOOL_REPLAY_PREDICTION_HPP

#include <optional>
#include <utility>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/fitted_model.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {

/// What follows from changes to a run. Simulates the fitted run with and without the change. The
/// simulation without the change shows how wrong the simulation is; predictions are corrected by
/// this error, for small changes completely and for large changes by about half. Thread-safe,
/// because nothing changes after the construction.
class what_if : public fitted_model {
 public:
  /// Draws random samples of the run's batches, and simulates each as it was recorded.
  explicit what_if(fitted_model of);
  /// Fits the model to a run; see fit_model().
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus)
      : what_if(fit_model(run, std::move(recorded), also, cpus)) {}

  /// Predicts the effect of a change with a 90 % confidence interval, which is unlimited if the
  /// model is_unlike() the run.
  prediction predict(const pipeline_change& change) const;

 private:
  /// A random sample of a run's batches, with a speed law that is varied at random, because its
  /// estimate is not exact. All changes are simulated with the same samples.
  struct drawn_run {
    drawn_units units;
    speed_law law;
    double before_per_s = 0;  ///< simulated throughput without a change
  };
  /// Simulates a sample with a change. Returns the throughput in batches per second.
  double drawn_per_s(const pipeline_change& change, const speed_law& law,
                     const drawn_units& units) const;
  /// Returns how much the predicted gain depends on the batches that happened to be in the run: the
  /// standard deviation of the logarithm of the gain over the samples.
  double drawn_sd(const pipeline_change& change) const;
  /// If another recorded run had the number of workers that `change` asks for, and nothing else
  /// changes, moves the prediction towards the throughput that this run had.
  void use_measurement(const pipeline_change& change, prediction& p) const;
  /// If something that is not simulated may take longer than the changed run, extends the interval
  /// to its length, because the recording does not show whether the changed run depends on it.
  void include_bounds(const pipeline_change& change, prediction& p) const;
  /// Returns a prediction for each possible explanation of the run's throughput, and for both ends
  /// of the range of CPUs that the changed run may get, without the one that guess() returns.
  std::vector<prediction> other_guesses(const pipeline_change& change) const;

  std::vector<drawn_run> drawn_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
