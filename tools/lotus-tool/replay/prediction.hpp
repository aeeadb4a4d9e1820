// Predicts the effect of a change to a run, with a confidence interval.
#ifndef LOTUS_TOOL_REPLAY_PREDICTION_HPP
#define LOTUS_TOOL_REPLAY_PREDICTION_HPP

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/fitted_model.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {

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

/// Random samples of a run's batches, with speed laws that are varied at random, because their
/// estimate is not exact. All changes are simulated with the same samples.
class drawn_runs {
 public:
  /// @param of  must outlive this object.
  explicit drawn_runs(const fitted_model& of);

  /// Returns how much the predicted gain depends on the batches that happened to be in the run: the
  /// standard deviation of the logarithm of the gain over the samples.
  double sd(const pipeline_change& change) const;

 private:
  struct drawn_run {
    drawn_units units;
    speed_law law;
    double before_per_s = 0;  ///< simulated throughput without a change
  };
  /// Simulates a sample with a change. Returns the throughput in batches per second.
  double per_s(const pipeline_change& change, const speed_law& law, const drawn_units& units) const;

  const fitted_model& of_;
  std::vector<drawn_run> drawn_;
};

/// Predicts the effect of changes to a run: simulates the fitted run with and without the change.
/// The simulation without the change shows how wrong the simulation is; predictions are corrected
/// by this error, for small changes completely and for large changes by about half. Thread-safe.
class what_if : public fitted_model {
 public:
  explicit what_if(fitted_model of) : fitted_model(std::move(of)) {}
  /// Fits the model to a run; see fit_model().
  what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
          std::optional<double> cpus)
      : what_if(fit_model(run, std::move(recorded), also, cpus)) {}
  what_if(const what_if&) = delete;
  what_if& operator=(const what_if&) = delete;

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
  prediction predict(const pipeline_change& change) const;

 private:
  /// If another recorded run had the number of workers that `change` asks for, and nothing else
  /// changes, moves the prediction towards the throughput that this run had.
  void use_measurement(const pipeline_change& change, prediction& p) const;
  /// Returns a prediction for each possible explanation of the run's throughput, and for both ends
  /// of the range of CPUs that the changed run may get, without the one that guess() returns.
  std::vector<prediction> other_guesses(const pipeline_change& change) const;

  double drawn_sd(const pipeline_change& change) const;

  mutable known_guesses guesses_;  // what guess() returned
  // Drawn when drawn_sd() needs them for the first time.
  mutable std::once_flag drawing_;
  mutable std::unique_ptr<drawn_runs> drawn_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_PREDICTION_HPP
