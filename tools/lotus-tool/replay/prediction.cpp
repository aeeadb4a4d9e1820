#include "replay/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {
namespace {

/// The errors below are standard deviations of log(predicted / measured throughput), that is,
/// relative errors. They were measured on pairs of runs with bench/whatif_numbers and determine how
/// wide the confidence intervals are. model_sd is the error of the simulation itself.
constexpr double model_sd = 0.012;
/// Relative error of predictions if the changed run has more threads than any recorded run.
constexpr double beyond_sd = 0.03;
constexpr double wall_sd = 0.02;  ///< error if CPU time was not recorded
constexpr double wall_beyond_sd = 0.12;
/// Relative error of predictions if a rate limit is assumed. It is large because the model assumes
/// that all calls take the same time.
constexpr double limit_sd = 0.06;
/// Relative error of predictions if other programs compete for the CPUs, because the scheduler is
/// only roughly fair: measured on nine pairs of runs next to a program that always wanted two CPUs.
constexpr double crowded_sd = 0.1;

}  // namespace

double what_if::gain_between_pauses(const prediction& of) const {
  const double scale = base.whole_ns > 0 ? run_ns() / base.whole_ns : 1;
  const double pauses_ns = scale * base.pauses_ns;
  const double before_ns = run_ns() - pauses_ns;
  const double after_ns = of.run_ns - pauses_ns;
  return before_ns > 0 && after_ns > 0 ? before_ns / after_ns : of.gain;
}

std::vector<prediction> what_if::other_guesses(const pipeline_change& change) const {
  struct assumption {
    const explanation* why;
    double cpus;
    unrecorded_cpu unrecorded;
  };
  std::vector<assumption> assumptions;
  const cpu_range cpus = cpus_with(change);
  for (const explanation& why : explanations) {
    const bool is_guess = &why == &explanations.front() && cpus.low == cpus.high;
    if (!is_guess) assumptions.push_back({&why, cpus.low, unrecorded_cpu::stays});
    if (cpus.high > cpus.low) assumptions.push_back({&why, cpus.high, unrecorded_cpu::stays});
    if (!budget.much_is_unrecorded()) continue;
    assumptions.push_back({&why, cpus.high, unrecorded_cpu::vanishes});
  }
  std::vector<prediction> guesses(assumptions.size());
  for_each_in_parallel(guesses.size(), unbounded, [&](std::size_t i) {
    const assumption& a = assumptions[i];
    guesses[i] = guess_under(*a.why, change, a.cpus, a.unrecorded);
  });
  return guesses;
}

prediction what_if::guess(const pipeline_change& change) const {
  if (const std::optional<prediction> known = guesses_.find(change)) return *known;
  const cpu_range cpus = cpus_with(change);
  const prediction p = guess_under(explanations.front(), change, std::sqrt(cpus.low * cpus.high));
  guesses_.add(change, p);
  return p;
}

prediction what_if::min_guess(const pipeline_change& change) const {
  prediction least = guess(change);
  const cpu_range cpus = cpus_with(change);
  for (const explanation& why : explanations) {
    const assumed_servers& a = why.assumed;
    // There are three explanations for each rate limit, with three durations of a call. Use only
    // the one with the mean duration here. The others only widen the confidence interval.
    if (a.apart_ns > 0 && a.each_ns != a.operation->served.alone_ns) continue;
    if (&why == &explanations.front() && cpus.low >= cpus.high) continue;
    const prediction other = guess_under(why, change, cpus.low);
    if (other.gain < least.gain) least = other;
  }
  if (is_bracket(change) && least.per_s > achieved()) {
    least.per_s = achieved();
    least.run_ns = run_ns();
    least.gain = 1;
  }
  return least;
}

prediction what_if::unlimited_guess(const pipeline_change& change) const {
  const auto free = std::find_if(explanations.begin(), explanations.end(),
                                 [](const explanation& why) { return why.assumed.is_free(); });
  if (free == explanations.end()) return guess(change);
  const cpu_range cpus = cpus_with(change);
  return guess_under(*free, change, std::sqrt(cpus.low * cpus.high));
}

void what_if::use_measurement(const pipeline_change& change, prediction& p) const {
  pipeline_change only_workers;
  only_workers.workers = change.workers;
  if (measured_also.per_s <= 0 || change.workers != measured_also.workers ||
      !(change == only_workers)) {
    return;
  }
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  if (p.per_s <= 0 || p.low <= 0) return;
  // Without chance in the recordings, both errors would be 0; then they count alike.
  const double measured_sd = std::max(model_sd, std::hypot(run_sd, measured_also.sd));
  const double predicted_sd = std::max(model_sd, std::log(p.high / p.low) / (2 * quantile));
  // The mean of both, weighted by their precision.
  const double weight = 1 / (measured_sd * measured_sd);
  const double other = 1 / (predicted_sd * predicted_sd);
  const double nearer =
      std::exp(std::log(measured_also.per_s / p.per_s) * weight / (weight + other));
  p.per_s *= nearer;
  p.gain *= nearer;
  p.run_ns /= nearer;
  p.steady_per_s *= nearer;
  p.low = std::min(p.low, measured_also.per_s * std::exp(-quantile * measured_sd));
  p.high = std::max(p.high, measured_also.per_s * std::exp(quantile * measured_sd));
}

prediction what_if::predict(const pipeline_change& change) const {
  if (change == pipeline_change{}) return guess(change);
  prediction p;
  std::vector<prediction> others;
  double drawn = 0;
  const std::vector<std::function<void()>> all{[&] { drawn = drawn_sd(change); },
                                               [&] { p = guess(change); },
                                               [&] { others = other_guesses(change); }};
  for_each_in_parallel(all.size(), all.size(), [&](std::size_t i) { all[i](); });
  const bool beyond = beyond_seen(change);
  const double model =
      pipeline.cpu_known ? (beyond ? beyond_sd : model_sd) : (beyond ? wall_beyond_sd : wall_sd);
  const double limit = explanations.front().assumed.apart_ns > 0 ? limit_sd : 0;
  const double crowded = share_of_others > 0 ? crowded_sd : 0;
  const double sd = std::sqrt(model * model + 2 * run_sd * run_sd + drawn * drawn + limit * limit +
                              crowded * crowded);
  for (const prediction& other : others) {
    p.low = std::min(p.low, other.low);
    p.high = std::max(p.high, other.per_s);
  }
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  p.low *= std::exp(-quantile * sd);
  p.high *= std::exp(quantile * sd);
  if (is_bracket(change)) p.low = std::min(p.low, achieved() * std::exp(-quantile * sd));
  if (!change.faster.empty()) p.high *= gain_without_lock_waits();
  constexpr double busy = 0.8;
  if (p.cpus_busy >= busy) {
    p.low *=
        loss_of_crowding(static_cast<double>(threads_after(change)),
                         static_cast<double>(max_threads), change.cpus.value_or(speed.law.cpus));
  }
  use_measurement(change, p);
  return p;
}

}  // namespace lotus::tool
