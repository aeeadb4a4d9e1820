#include "replay/target.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"

namespace lotus::tool {
namespace {

constexpr double most_faster = 64;
constexpr double near_enough = 0.98;

std::size_t most_workers(const what_if& run) {
  const double cpus = run.law().law.cpus;
  return std::max<std::size_t>(16, static_cast<std::size_t>(4 * cpus));
}

pipeline_change with_workers(const what_if& run, std::size_t workers) {
  pipeline_change change;
  change.workers = workers;
  change.own_thread = run.recorded().makes_itself;
  return change;
}

/// The factor by which one part of the work must become faster; 0 if no factor suffices.
double needed(const what_if& run, pipeline_change settings, const std::string& work,
              double target_per_s) {
  const auto reaches = [&](double faster) {
    settings.faster[work] = faster;
    return run.guess(settings).steady_per_s >= target_per_s;
  };
  if (!reaches(most_faster)) return 0;
  double low = 1;
  double high = most_faster;
  while (high / low > 1.02) {
    const double middle = std::sqrt(low * high);
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

double consumer_rate(const what_if& run) {
  pipeline_change change;
  change.making_faster = 1e6;
  change.no_start_up = true;
  change.own_thread = run.recorded().makes_itself;
  return run.guess(change).steady_per_s;
}

way_to_target find_way(const what_if& run, const name_table& names, double target_per_s) {
  way_to_target way;
  way.target_per_s = target_per_s;
  double best = 0;
  for (std::size_t workers = 1; workers <= most_workers(run); ++workers) {
    const pipeline_change plain = with_workers(run, workers);
    const bool single = run.recorded().stages.size() == 1;
    for (const std::size_t prefetch : {1U, 2U, 4U, 8U}) {
      pipeline_change settings = plain;
      if (single) settings.prefetch = prefetch;
      const double per_s = run.guess(settings).steady_per_s;
      if (per_s >= near_enough * target_per_s) {
        way.settings = settings;
        return way;
      }
      if (per_s > 1.01 * best) {
        best = per_s;
        way.best_settings = settings;
      }
      if (!single) break;
    }
  }
  for (const std::string& work : names_of_work(run.recorded(), names)) {
    const double faster = needed(run, way.best_settings, work, target_per_s);
    if (faster > 0 && (way.faster == 0 || faster < way.faster)) {
      way.faster = faster;
      way.work = work;
    }
  }
  return way;
}

}  // namespace lotus::tool
