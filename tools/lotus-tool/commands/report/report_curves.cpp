#include "commands/report/report_curves.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "curve/curve.hpp"
#include "describe/description.hpp"
#include "replay/change.hpp"
#include "replay/change_text.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {
namespace {

// How many batches and items all simulations of a page may have together, so that they take about a
// second. A curve needs a hundred random samples of the run for each point, a slider none.
constexpr double simulated_for_axes = 1e6;
constexpr double simulated_for_sliders = 4e5;

struct slider {
  std::string name;
  std::vector<double> speeds;  ///< the first one is 1
};

/// Returns the operations and stages with the largest gains, each with its speeds.
std::vector<slider> sliders_of(const diagnosis& of, double points, double units) {
  constexpr std::size_t most = 3;
  std::vector<slider> sliders;
  for (const path_gain& gain : of.path_gains) {
    if (sliders.size() < most) sliders.push_back({gain.path.name, {}});
  }
  for (const std::vector<double>& speeds :
       {std::vector<double>{1, 1.5, 2, 3}, std::vector<double>{1, 2, 3},
        std::vector<double>{1, 2}}) {
    for (slider& one : sliders) one.speeds = speeds;
    const double all =
        std::pow(static_cast<double>(speeds.size()), static_cast<double>(sliders.size()));
    if (all * points * units <= simulated_for_sliders) return sliders;
  }
  return {};
}

std::vector<double> speeds_in(std::size_t combination, const std::vector<slider>& sliders) {
  std::vector<double> speeds;
  speeds.reserve(sliders.size());
  for (const slider& one : sliders) {
    speeds.push_back(one.speeds[combination % one.speeds.size()]);
    combination /= one.speeds.size();
  }
  return speeds;
}

/// Writes [[…],…]: for each combination of the sliders' speeds, the throughput of each point.
void write_rates(json_writer& json, const what_if& run, const speed_curve& curve,
                 const std::vector<slider>& sliders) {
  std::size_t combinations = 1;
  for (const slider& one : sliders) combinations *= one.speeds.size();
  std::vector<std::vector<double>> rates(combinations);
  for_each_in_parallel(combinations, unlimited_threads, [&](std::size_t c) {
    const std::vector<double> speeds = speeds_in(c, sliders);
    for (const curve_point& point : curve.points) {
      pipeline_change change = point.change;
      for (std::size_t s = 0; s < sliders.size(); ++s) {
        if (speeds[s] != 1) change.faster[sliders[s].name] = speeds[s];
      }
      // Without a slider, these are the predictions themselves.
      const double per_s = c == 0 ? point.would_be.per_s : run.guess(change).per_s;
      rates[c].push_back(std::round(per_s * 1000) / 1000);
    }
  });
  write_value(json.key("rates"), rates);
}

void write_sliders(json_writer& json, const what_if& run, const std::vector<slider>& sliders) {
  json.newline().key("sliders").list(sliders, [&](const slider& one) {
    pipeline_change change;
    change.faster[one.name] = one.speeds.back();
    const prediction p = run.predict(change);
    json.newline().begin_object().member("name", one.name);
    // How far the interval reaches, as factors of the prediction.
    json.member("low", p.per_s > 0 ? p.low / p.per_s : 1);
    json.member("high", p.per_s > 0 ? p.high / p.per_s : 1).key("steps");
    json.list(one.speeds, [&](double speed) {
      change.faster[one.name] = speed;
      json.begin_object().member("speed", speed);
      json.member("text", speed == 1 ? "" : change_text(change, run.recorded())).end_object();
    });
    json.end_object();
  });
}

}  // namespace

void write_curves(json_writer& json, const run_data& run, const judgement& judged,
                  measured_runs& others) {
  json.begin_object();
  const phrase why_not = why_not_predicted(run, judged);
  if (!why_not.empty()) {
    json.member("why_not", text_of(why_not)).end_object();
    return;
  }
  const what_if& asked = *judged.simulated;
  const auto units = std::max(1.0, static_cast<double>(asked.recorded().units.size()));
  constexpr double draws = 100;
  constexpr double most_drawn = 200'000;
  double left = simulated_for_axes;
  double points = 0;
  std::vector<speed_curve> curves;
  const std::vector<measured_run> dots = others.others_than(*run.files);
  std::vector<curve_axis> axes = setting_axes(asked.recorded());
  const auto compared =
      std::find_if(dots.begin(), dots.end(), [](const measured_run& dot) { return dot.named; });
  if (compared != dots.end()) {
    const auto changed = changed_work(*compared, measured_from(run, asked.recorded()));
    if (changed) axes.insert(axes.begin(), *changed);
  }
  for (const curve_axis& axis : axes) {
    if (left <= 0) break;
    speed_curve curve = draw_curve(asked, run, *judged.found, axis, dots);
    left -= static_cast<double>(curve.points.size()) * std::min(draws * units, most_drawn);
    points += static_cast<double>(curve.points.size());
    if (curve.points.size() > 1) curves.push_back(std::move(curve));
  }
  const std::vector<slider> sliders = sliders_of(*judged.found, std::max(points, 1.0), units);
  json.newline().key("axes").list(curves, [&](const speed_curve& curve) {
    json.newline().begin_object();
    description_of(&curve).write_members(json, curve);
    write_rates(json, asked, curve, sliders);
    json.end_object();
  });
  write_sliders(json, asked, sliders);
  json.end_object();
}

}  // namespace lotus::tool
