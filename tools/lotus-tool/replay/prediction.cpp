#include "replay/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

#include "base/parallel.hpp"
#include "replay/plan.hpp"

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

/// Draws random samples of a run's batches, with repetition (a block bootstrap). Predictions from
/// several samples show how much a prediction depends on chance. Draws blocks of successive
/// batches, because successive batches are similar and not independent.
class block_sampler {
 public:
  explicit block_sampler(const recorded_pipeline& p) : p_(p) {}

  /// Draws a sample for each epoch from the batches of the epoch.
  drawn_units draw() {
    drawn_units drawn(p_.units.size());
    for (const planned_epoch& e : p_.epochs) {
      draw_into(drawn, e.first_unit, e.end_unit, e.first_unit, e.end_unit);
    }
    return drawn;
  }

  /// Draws a sample of `count` batches, fewer than the run has, from all batches of the run.
  drawn_units draw(std::uint32_t count) {
    drawn_units drawn(count);
    draw_into(drawn, 0, count, 0, static_cast<std::uint32_t>(p_.units.size()));
    return drawn;
  }

 private:
  /// Fills the elements [begin, end) of `drawn` with blocks of the units [first, last).
  void draw_into(drawn_units& drawn, std::uint32_t begin, std::uint32_t end, std::uint32_t first,
                 std::uint32_t last) {
    if (first == last) return;
    const std::uint32_t count = end - begin;
    const auto length = std::max<std::uint32_t>(
        1, std::min<std::uint32_t>(count / 5, static_cast<std::uint32_t>(std::sqrt(count))));
    for (std::uint32_t at = 0; at < count; at += length) {
      const std::uint32_t from =
          std::uniform_int_distribution<std::uint32_t>(0, last - first - 1)(random_);
      for (std::uint32_t i = 0; i < length && at + i < count; ++i) {
        drawn[begin + at + i] = first + (from + i) % (last - first);
      }
    }
  }

  const recorded_pipeline& p_;
  std::mt19937_64 random_{1};
};

/// Returns the factor by which works would be shorter if they never waited for a CPU. The simulated
/// threads share the CPUs at once, so the simulation leaves out a part of these waits.
double gain_without_queueing(const std::vector<measured_work>& works) {
  double all_ns = 0;
  double queued_ns = 0;
  for (const measured_work& w : works) {
    all_ns += w.all_ns();
    queued_ns += w.queued_ns;
  }
  return all_ns > queued_ns ? all_ns / (all_ns - queued_ns) : 1;
}

bool has_items(const recorded_pipeline& p) {
  return std::any_of(p.stages.begin(), p.stages.end(),
                     [](const recorded_stage& s) { return s.of_items; });
}

}  // namespace

what_if::what_if(fitted_model of) : fitted_model(std::move(of)) {
  if (is_unlike()) return;
  block_sampler blocks(pipeline);
  std::mt19937_64 random(2);
  std::normal_distribution<double> slowing(speed.law.slowing, speed.slowing_sd);
  std::uniform_real_distribution<double> slice_factor(0.8, 1.25);
  // Limits the time of all simulations. A sample of a longer run contains only a part of its
  // batches, so it varies more than the run; with so many batches, this makes little difference.
  constexpr std::size_t most_batches = 200'000;
  constexpr std::size_t least_draws = 8;
  constexpr std::uint32_t most_in_draw = most_batches / least_draws;
  const std::size_t draws = std::clamp<std::size_t>(
      most_batches / std::max<std::size_t>(1, pipeline.units.size()), least_draws, 100);
  const bool items = has_items(pipeline);
  for (std::size_t i = 0; i < draws; ++i) {
    drawn_run& run = drawn_.emplace_back();
    if (!items) {
      run.units = pipeline.units.size() > most_in_draw ? blocks.draw(most_in_draw) : blocks.draw();
    }
    run.law = speed.law;
    run.law.slowing = std::max(0.0, slowing(random));
    run.law.turn_ns *= slice_factor(random);
  }
  for_each_in_parallel(draws, unlimited_threads, [&](std::size_t i) {
    drawn_[i].before_per_s = drawn_per_s({}, drawn_[i].law, drawn_[i].units);
  });
}

double what_if::drawn_per_s(const pipeline_change& change, const speed_law& law,
                            const drawn_units& units) const {
  const explanation& why = explanations.front();
  return budget
      .replay_within(plan(change, law, units, why.assumed, why.queued), unrecorded_cpu::stays)
      .per_s();
}

double what_if::drawn_sd(const pipeline_change& change) const {
  const cpu_range cpus = cpus_with(change);
  pipeline_change asked = change;
  if (share_of_others > 0) asked.cpus.reset();
  std::vector<double> after_per_s(drawn_.size());
  for_each_in_parallel(drawn_.size(), unlimited_threads, [&](std::size_t i) {
    speed_law law = drawn_[i].law;
    if (share_of_others > 0) law.cpus = std::sqrt(cpus.low * cpus.high);
    after_per_s[i] = drawn_per_s(asked, law, drawn_[i].units);
  });
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    const double before = drawn_[i].before_per_s;
    if (before <= 0 || after_per_s[i] <= 0) continue;
    const double log_gain = std::log(after_per_s[i] / before);
    sum += log_gain;
    squares += log_gain * log_gain;
  }
  const auto n = static_cast<double>(drawn_.size());
  return n > 0 ? std::sqrt(std::max(0.0, squares / n - sum / n * sum / n)) : HUGE_VAL;
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
  for_each_in_parallel(guesses.size(), unlimited_threads, [&](std::size_t i) {
    const assumption& a = assumptions[i];
    guesses[i] = guess_under(*a.why, change, a.cpus, a.unrecorded);
  });
  return guesses;
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

void what_if::include_bounds(const pipeline_change& change, prediction& p) const {
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  for (const length_bound& of : pipeline.bounds) {
    // The recorded run was long enough for it.
    const double length = std::min(1.0, of.least_length(change.faster, p.gain));
    const double per_s = achieved() / length;
    if (per_s >= p.per_s || (!p.bounded_by.empty() && per_s >= p.bounded_per_s)) continue;
    p.bounded_by = of.name;
    p.bounded_by_rate = of.is_rate;
    p.bounded_per_s = per_s;
    p.low = std::min(p.low, std::max(achieved(), per_s * std::exp(-quantile * model_sd)));
  }
}

namespace {

/// Whether the recording leaves open that something passes batches on to the consumer one after the
/// other, also during its steps, and limits the run: receiving takes time, and takes no longer
/// after short steps only because all steps are alike, or takes longer after short steps.
bool may_be_handed_over_in_turn(const recorded_pipeline& p) {
  double n = 0;
  double takes_ns = 0;
  double steps_ns = 0;
  double squares = 0;
  double products = 0;
  for (const planned_epoch& e : p.epochs) {
    for (std::size_t i = 1; i < e.deliveries.size(); ++i) {
      const double step_ns = p.steps[e.deliveries[i - 1]].all_ns();
      const double take_ns = p.takes_ns[e.deliveries[i]];
      ++n;
      takes_ns += take_ns;
      steps_ns += step_ns;
      squares += step_ns * step_ns;
      products += step_ns * take_ns;
    }
  }
  constexpr double little = 0.05;
  if (n < 2 || takes_ns < little * (takes_ns + steps_ns)) return false;
  const double variance = squares / n - steps_ns / n * steps_ns / n;
  const double alike = 0.03 * steps_ns / n;
  if (variance < alike * alike) return true;
  const double slope = (products / n - takes_ns / n * steps_ns / n) / variance;
  return slope < -0.5;
}

}  // namespace

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
  const pipeline_change least = least_effect(change);
  if (!(least == change)) p.low = std::min(p.low, guess(least).low);
  const pipeline_change most = most_effect(change);
  if (!(most == change)) p.high = std::max(p.high, guess(most).per_s);
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  p.low *= std::exp(-quantile * sd);
  p.high *= std::exp(quantile * sd);
  const bool in_turn = change.step < 1 && may_be_handed_over_in_turn(pipeline);
  if (in_turn || is_bracket(change)) {
    p.low = std::min(p.low, achieved() * std::exp(-quantile * sd));
  }
  if (!change.faster.empty()) p.high *= gain_without_lock_waits();
  if (change.loader_cpus) p.high *= gain_without_queueing(pipeline.steps);
  constexpr double busy = 0.8;
  if (p.cpus_busy >= busy) {
    p.low *=
        loss_of_crowding(static_cast<double>(threads_after(change)),
                         static_cast<double>(max_threads), change.cpus.value_or(speed.law.cpus));
  }
  use_measurement(change, p);
  include_bounds(change, p);
  return p;
}

}  // namespace lotus::tool
