// Throughput over the number of workers or another quantity: the predicted curve with its 90 %
// intervals, what limits it, and the runs that were measured.
#ifndef LOTUS_TOOL_CURVE_CURVE_HPP
#define LOTUS_TOOL_CURVE_CURVE_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curve/measured_runs.hpp"
#include "describe/described.hpp"
#include "findings/diagnosis.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

struct curve_point {
  double at = 0;  ///< the value of the quantity, such as 4 workers
  pipeline_change change;
  std::string text;  ///< the change in words; "as recorded" if it changes nothing
  prediction would_be;
};

/// A throughput that no point of the curve can exceed, whatever is done about the other limits.
struct curve_limit {
  phrase name;       ///< "consumer", "2 CPUs", or the name of a lock, an operation or a stage
  double per_s = 0;  ///< in batches per second
};

struct curve_dot {
  measured_run run;
  double at = 0;
  bool is_recorded = false;  ///< whether the predictions are made from this run
};

struct speed_curve {
  curve_axis axis;
  std::vector<curve_point> points;  ///< in order of the quantity; empty if `why_not` is not
  std::vector<curve_limit> limits;
  std::vector<curve_dot> dots;  ///< the run that the predictions are made from, then others
  phrase why_not;               ///< why nothing is predicted
  phrase note;                  ///< why the curve ends where it does; may be empty

  /// Returns the throughput at the top of a picture of this curve.
  double top_per_s() const;
  /// Returns the limits that such a picture shows, the lowest first.
  std::vector<curve_limit> shown_limits() const;
};

/// Returns a quantity in words, such as "workers" or "threads in Decode".
/// @param of_one  whether the words follow the number 1, as in "1 thread in Decode".
std::string title_of(const curve_axis& axis, bool of_one = false);

/// Returns facts that contradict a prediction, after words that say so, without the final period;
/// empty if there are none.
phrase with_facts(std::string_view before, const phrase& facts);
/// Returns why a run cannot be simulated; empty if it can.
phrase why_not_simulated(const run_data& run, const judgement& judged);
/// Returns why the effects of changes are not predicted; empty if they are. whatif prints nothing
/// either in this case.
phrase why_not_predicted(const run_data& run, const judgement& judged);
/// The same for a diagnosed run that can be simulated.
phrase why_not_predicted(const diagnosis& of, const what_if& run);

/// Returns the quantity that a user names: "workers", "prefetch", "cpus", "stage:NAME" for the
/// threads of a stage, or the name of an operation or stage for its speed. In a run whose stages
/// have threads of their own, "workers" are the threads of the busiest stage. Throws input_error if
/// the run has no such quantity.
curve_axis axis_named(const std::string& name, const recorded_pipeline& pipeline,
                      const name_table& names);

/// Returns the quantities of a run that are settings.
std::vector<curve_axis> setting_axes(const recorded_pipeline& pipeline);

/// Returns the operation or stage whose speed is all in which a run differs from another one;
/// nullopt if there is none.
/// @param recorded  the run whose operations are 1 time as fast.
std::optional<curve_axis> changed_work(const measured_run& run, const measured_run& recorded);

/// Predicts the curve.
/// @param of      the diagnosis of the run, which has its figures, findings and stages.
/// @param others  other runs of the same program.
speed_curve draw_curve(const what_if& run, const run_data& data, const diagnosis& of,
                       const curve_axis& axis, const std::vector<measured_run>& others);

const description<curve_point>& description_of(const curve_point*);
const description<curve_limit>& description_of(const curve_limit*);
const description<curve_dot>& description_of(const curve_dot*);
const description<speed_curve>& description_of(const speed_curve*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CURVE_CURVE_HPP
