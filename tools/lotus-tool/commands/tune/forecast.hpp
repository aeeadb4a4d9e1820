// Predicts the throughput of configurations from trials of other configurations.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_FORECAST_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_FORECAST_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "commands/tune/knobs.hpp"
#include "findings/words.hpp"
#include "log/folder/log_files.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/fitted_model.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// The records of a trial. `run` refers to `files`, so the object must not be moved.
struct recorded_trial {
  run_files files;
  run_data run;
  std::optional<recorded_pipeline> pipeline;
  phrase why_not;  ///< why the trial permits no prediction; otherwise empty
};

/// The possible relations between a setting named "prefetch" and the number of batches in flight.
enum class prefetch_rule : std::uint8_t {
  per_worker,  ///< prefetch times workers, as in PyTorch
  queue,       ///< length of the queue between workers and consumer
  total        ///< number of batches in flight
};

/// Predicts by simulation. A prediction starts from the most similar trial. Further trials improve
/// it: two trials with different numbers of workers show which times depend on this number.
class forecast {
 public:
  /// @param space  must outlive this object.
  explicit forecast(const search_space& space) : space_(space) {}

  /// Adds a trial of the configuration `at`.
  /// @param per_s  the measured throughput.
  void learn(const configuration& at, std::unique_ptr<recorded_trial> trial, double per_s);

  /// Returns the throughput that is predicted for a configuration; nullopt if no trial permits a
  /// prediction. Waits for a lock or device are predicted only if the trials show them, so a
  /// prediction may be too high. A trial of the configuration then shows the true throughput. A
  /// prediction that is too low would be worse, because the configuration would never be tried.
  std::optional<double> per_s(const configuration& at) const;

  /// Returns why nothing can be predicted from the latest trial; empty if something can.
  const phrase& why_not() const noexcept { return why_not_; }

 private:
  struct learned {
    configuration at;
    std::unique_ptr<recorded_trial> trial;
    double per_s = 0;
  };
  /// A simulation of one trial. It also uses a second trial, to find what depends on the number of
  /// workers.
  struct simulation {
    std::unique_ptr<fitted_model> run;
    double base_per_s = 0;  ///< simulated throughput of the trial itself
  };

  bool is_comparable(const configuration& a, const configuration& b) const;
  double distance(const configuration& a, const configuration& b) const;
  const simulation& simulation_of(std::size_t base) const;
  std::optional<pipeline_change> change_to(const configuration& at, const learned& base,
                                           prefetch_rule rule) const;
  std::optional<double> simulated(const configuration& at, prefetch_rule rule) const;
  bool add_knob(std::size_t knob, const configuration& at, const learned& base,
                pipeline_change& change) const;
  prefetch_rule likeliest_rule() const;
  std::optional<std::size_t> in_flight_of(const configuration& at, prefetch_rule rule) const;
  void compare_predictions(const configuration& at, double per_s);
  void check_prefetch(const learned& one);
  double size_factor(std::size_t knob, double before, double after) const;

  const search_space& space_;
  std::vector<learned> trials_;
  // For each prefetch_rule, in the order of the enumeration, how much the trials so far contradict
  // it.
  std::array<double, 3> contradicted_{};
  phrase why_not_;
  mutable std::map<std::pair<std::size_t, std::size_t>, simulation> simulations_;
  mutable std::map<configuration, std::optional<double>> predicted_;  // valid until the next trial
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_FORECAST_HPP
