#include "replay/target.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"

namespace lotus::tool {
namespace {

constexpr double max_faster = 64;
constexpr double near_enough = 0.98;

std::size_t max_workers(const what_if& run) {
  const double cpus = run.law().law.cpus;
  return std::max<std::size_t>(16, static_cast<std::size_t>(4 * cpus));
}

pipeline_change with_workers(const what_if& run, std::size_t workers) {
  pipeline_change change;
  change.workers = workers;
  change.own_thread = run.recorded().makes_itself;
  return change;
}

/// Returns the factor by which the operation or stage `work` must become faster to reach the
/// target; 0 if no factor up to max_faster suffices.
double needed(const what_if& run, pipeline_change settings, const std::string& work,
              double target_per_s) {
  const auto reaches = [&](double faster) {
    settings.faster[work] = faster;
    return run.guess(settings).steady_per_s >= target_per_s;
  };
  if (!reaches(max_faster)) return 0;
  double low = 1;
  double high = max_faster;
  while (high / low > 1.02) {
    const double middle = std::sqrt(low * high);
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

/// Returns the prefetch depths per worker to try; nullopt leaves the depth as it is. Smaller depths
/// are no faster, and the depth matters only if there is a single stage.
std::vector<std::optional<std::size_t>> prefetch_depths(const recorded_pipeline& p) {
  std::vector<std::optional<std::size_t>> depths{std::nullopt};
  if (p.stages.size() != 1) return depths;
  constexpr std::size_t usual = 2;
  const std::size_t now = p.in_flight_held ? p.prefetch() : usual;
  for (const std::size_t depth : {1U, 2U, 4U, 8U}) {
    if (depth > now) depths.emplace_back(depth);
  }
  return depths;
}

/// Returns whether settings may be the way to a target. In a short run, more threads may raise the
/// throughput in steady state and yet make the whole run longer, because they need longer to start.
bool is_a_way(const what_if& run, const path_to_target& path, const prediction& to) {
  return to.gain >= 1 || path.target_per_s <= run.recorded().steady_per_s;
}

using is_forbidden = std::function<bool(const pipeline_change&)>;

/// Tries numbers of workers and prefetch depths.
void find_workers(const what_if& run, const is_forbidden& forbidden, path_to_target& path) {
  const std::size_t now = run.recorded().makes_itself ? 0 : run.recorded().workers();
  double best = run.guess({}).steady_per_s;
  const std::vector<std::optional<std::size_t>> depths = prefetch_depths(run.recorded());
  for (std::size_t workers = 1; workers <= max_workers(run); ++workers) {
    for (const std::optional<std::size_t> depth : depths) {
      pipeline_change settings = with_workers(run, workers);
      settings.prefetch = depth;
      const bool as_it_is = workers == now && !depth;
      if (!as_it_is && forbidden(settings)) continue;
      const prediction found = run.guess(settings);
      const double per_s = found.steady_per_s;
      if (!as_it_is && !is_a_way(run, path, found)) continue;
      if (per_s >= near_enough * path.target_per_s &&
          (as_it_is || is_a_way(run, path, run.predict(settings)))) {
        path.settings = settings;
        return;
      }
      if (per_s > 1.01 * best && found.gain > 1) {
        best = per_s;
        path.best_settings = settings;
      }
    }
  }
}

pipeline_change with_one_more(const what_if& run, pipeline_change change, std::size_t stage) {
  const recorded_pipeline& p = run.recorded();
  const std::size_t threads = threads_with(change, p, stage) + 1;
  change.threads[p.stages[stage].name] = threads;
  return change;
}

/// Removes added threads that are not needed to reach the target.
void remove_needless_threads(const what_if& run, path_to_target& path) {
  const recorded_pipeline& p = run.recorded();
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const std::string& name = p.stages[s].name;
    while (path.settings->threads.count(name) != 0) {
      pipeline_change fewer = *path.settings;
      if (--fewer.threads[name] == threads_with({}, p, s)) fewer.threads.erase(name);
      if (run.guess(fewer).steady_per_s < near_enough * path.target_per_s) break;
      path.settings = fewer;
    }
  }
}

/// Adds threads one by one, each to the stage where it increases the throughput most. If no single
/// thread gains 1 %, because several stages are equally slow, adds a thread to each of these
/// stages.
void find_threads(const what_if& run, const is_forbidden& forbidden, path_to_target& path) {
  const std::size_t stages = run.recorded().stages.size();
  double best_per_s = run.guess(path.best_settings).steady_per_s;
  for (std::size_t added = 0; best_per_s < near_enough * path.target_per_s; ++added) {
    if (added == max_workers(run)) return;
    pipeline_change next = path.best_settings;
    double next_per_s = 1.01 * best_per_s;
    pipeline_change one_each = path.best_settings;
    for (std::size_t s = 0; s < stages; ++s) {
      if (!may_need_threads(run.recorded(), path.best_settings, s)) continue;
      const pipeline_change more = with_one_more(run, path.best_settings, s);
      if (forbidden(more)) continue;
      one_each = with_one_more(run, one_each, s);
      const double per_s = run.guess(more).steady_per_s;
      if (per_s <= next_per_s) continue;
      next = more;
      next_per_s = per_s;
    }
    if (next == path.best_settings) {
      next = one_each;
      next_per_s = run.guess(one_each).steady_per_s;
      if (next_per_s <= 1.01 * best_per_s) return;
    }
    path.best_settings = next;
    best_per_s = next_per_s;
  }
  path.settings = path.best_settings;
  remove_needless_threads(run, path);
  if (path.settings->threads.empty() || is_a_way(run, path, run.predict(*path.settings))) return;
  path.settings.reset();
  path.best_settings = {};
}

}  // namespace

double consumer_rate(const what_if& run) {
  pipeline_change change;
  change.preprocessing_faster = 1e6;
  change.no_start_up = true;
  change.own_thread = run.recorded().makes_itself;
  return run.guess(change).steady_per_s;
}

path_to_target find_path_to_target(const what_if& run, const name_table& names, double target_per_s,
                                   const is_forbidden& forbidden) {
  path_to_target path;
  path.target_per_s = target_per_s;
  run.recorded().has_workers() ? find_workers(run, forbidden, path)
                               : find_threads(run, forbidden, path);
  if (path.settings) return path;
  if (run.predict(path.best_settings).gain < 1) path.best_settings = {};
  for (const std::string& work : names_of_work(run.recorded(), names)) {
    pipeline_change alone;
    alone.faster[work] = max_faster;
    if (forbidden(alone)) continue;
    const double faster = needed(run, path.best_settings, work, target_per_s);
    if (faster > 0 && (path.faster == 0 || faster < path.faster)) {
      path.faster = faster;
      path.work = work;
    }
  }
  return path;
}

std::optional<pipeline_change> fewest_threads(const what_if& run, const name_table& names) {
  const recorded_pipeline& p = run.recorded();
  if (p.makes_itself) return std::nullopt;
  std::string stage;
  std::size_t now = p.workers();
  if (!p.has_workers()) {
    const auto stages = stages_of_operations(p, names);
    const auto waits = p.lock ? stages.find(p.lock->operation) : stages.end();
    if (waits == stages.end()) return std::nullopt;
    stage = waits->second;
    for (const recorded_stage& s : p.stages) {
      if (s.name == stage) now = s.threads;
    }
  }
  for (std::size_t threads = 1; threads < now; ++threads) {
    pipeline_change fewer;
    if (stage.empty()) {
      fewer.workers = threads;
    } else {
      fewer.threads[stage] = threads;
    }
    if (run.guess(fewer).gain >= near_enough) return fewer;
  }
  return std::nullopt;
}

}  // namespace lotus::tool
