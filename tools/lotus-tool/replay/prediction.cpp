#include "replay/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/recorded/recounted_times.hpp"
#include "replay/replay.hpp"
#include "replay/serving.hpp"
#include "replay/speed_law.hpp"
#include "replay/variation.hpp"

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

/// If the simulation of the unmodified run is too fast by more than this share, it is adjusted.
constexpr double much_too_fast = 0.03;
/// If the simulation deviates from the run by more than this share, it cannot be trusted.
constexpr double max_off = 0.25;

/// The simulation of the unmodified run has a known error. Returns which share (0..1) of this error
/// the simulation of a changed run is expected to have as well; predictions are corrected by this
/// share. It is near 1 for a small change and near one half for a large change. The half is the
/// rounded result of measurements (0.53 on 117 pairs of runs with bench/whatif_numbers, 0.48 and
/// 0.65 on two other sets of 68 pairs).
/// @param gain  the factor by which the change increases the simulated throughput.
double share_of_error_kept(double gain) {
  constexpr double at_large_gain = 0.5;
  // Determines how fast the result decreases: at a gain of exp(0.2), 63 % of the decrease is done.
  constexpr double gain_scale = 0.2;
  return at_large_gain + (1 - at_large_gain) * std::exp(-std::abs(std::log(gain)) / gain_scale);
}

std::size_t batches_of(const recorded_pipeline& p) {
  std::size_t batches = 0;
  for (const planned_epoch& e : p.epochs) batches += e.end_unit - e.first_batch;
  return std::max<std::size_t>(1, batches);
}

}  // namespace

what_if::what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
                 std::optional<double> cpus)
    : run_(run), recorded_(std::move(recorded)), max_threads_(recorded_.threads()) {
  if (!recorded_.cpu_known && cpus) recorded_ = on_cpus(std::move(recorded_), *cpus);
  std::vector<const recorded_pipeline*> all{&recorded_};
  if (also != nullptr) {
    all.push_back(also);
    max_threads_ = std::max(max_threads_, also->threads());
    if (also->has_workers() && recorded_.has_workers() && !also->makes_itself) {
      measured_also_ = {also->workers(), also->achieved_per_s, error_of_mean(*also)};
    }
  }
  law_ = estimate_speed(all, cpus.value_or(recorded_.cpu_known ? recorded_.cpus.value_or(0) : 0));
  budget_ = cpu_budget(recorded_, plan({}, law_.law, {}, {}, false), length_ns());
  base_ = replayed_with({}, law_.law, {});
  replayed_per_s_ = base_.per_s();
  loosen_policies();
  if (recorded_.cpu_known && base_.per_s() > (1 + much_too_fast) * achieved()) {
    if (fewest_cpus() <= 0) fit_time_slice();
    fit_cpus();
  }
  run_sd_ = run_sd_of(run);
  find_explanations(also);
}

void what_if::find_explanations(const recorded_pipeline* also) {
  constexpr double like_it = 0.1;
  const bool both = also != nullptr && also->workers() != recorded_.workers() &&
                    !also->makes_itself && !recorded_.makes_itself;
  std::vector<assumed_servers> all =
      both ? explanations_of(recorded_, *also) : explanations_of(recorded_);
  assume_sampled_lock(all);
  std::vector<replay_result> replayed(all.size(), base_);
  for_each_in_parallel(all.size(), unlimited_threads, [&](std::size_t i) {
    if (!all[i].is_free()) replayed[i] = replayed_with({}, law_.law, all[i]);
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    explanation one{all[i], replayed[i]};
    count_queueing(one);
    const bool is_like = std::abs(std::log(one.base.per_s() / fitted())) <= like_it;
    if (all[i].is_free() || is_like) explanations_.push_back(one);
  }
  if (both) keep_what_explains(*also);
  if (!explanations_.empty()) return;
  explanations_.push_back({{}, base_});
  // No assumption about a limit reproduces the run. Add an explanation for each limit that the
  // recording may show, so that the confidence interval becomes wide enough.
  for (const assumed_servers& assumed : explanations_of(recorded_)) {
    if (assumed.is_free()) continue;
    const replay_result limited = replayed_with({}, law_.law, assumed);
    if (limited.per_s() > 0) explanations_.push_back({assumed, limited});
  }
}

void what_if::count_queueing(explanation& why) {
  if (why.base.per_s() <= (1 + much_too_fast) * achieved() || !waits_little_for_cpus()) return;
  if (!queued_) queued_ = with_queueing(recorded_);
  const replay_result queued = replayed_with({}, law_.law, why.assumed, true);
  // In the simulation `queued`, waits for a CPU count as blocked time; in `why.base`, they are left
  // out. Use `queued` only if its throughput is nearer to the measured throughput, on a logarithmic
  // scale.
  if (queued.per_s() * why.base.per_s() <= achieved() * achieved()) return;
  why.queued = true;
  why.base = queued;
}

bool what_if::waits_little_for_cpus() const {
  constexpr double little = 0.2;
  double queued_ns = 0;
  double all_ns = 0;
  for (const measured_work& w : recorded_.works) {
    queued_ns += w.queued_ns;
    all_ns += w.cpu_ns + w.blocked_ns + w.queued_ns;
  }
  return others_share_ <= 0 && queued_ns > 0 && queued_ns < little * all_ns;
}

void what_if::keep_what_explains(const recorded_pipeline& also) {
  pipeline_change other;
  if (recorded_.stages.size() == 1 || recorded_.stages.front().pool) {
    other.workers = also.workers();
    if (also.in_flight_held && also.stages.size() == 1) other.prefetch = also.prefetch();
  }
  for (const recorded_stage& s : also.stages) {
    if (!other.workers) other.threads[s.name] = s.threads;
  }
  std::vector<std::pair<double, explanation>> tried;
  for (const explanation& why : explanations_) {
    const double predicted = guess_under(why, other, law_.law.cpus).per_s;
    tried.emplace_back(std::abs(std::log(predicted / also.achieved_per_s)), why);
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Two equal runs may differ in throughput by this share: at least 4 %, or 2.33 standard errors,
  // which chance exceeds in only 2 % of the cases.
  constexpr double usual_noise = 0.04;
  const double noise =
      std::max(usual_noise, 2.33 * std::hypot(error_of_mean(recorded_), error_of_mean(also)));
  // If even the best explanation predicts a throughput of the run `also` that is wrong by more than
  // about this share, keep all explanations.
  constexpr double max_deviation = 0.2;
  if (tried.empty() || tried.front().first > max_deviation) return;
  explanations_.clear();
  for (const auto& [off, why] : tried) {
    if (off <= std::max(noise, 1.5 * tried.front().first)) explanations_.push_back(why);
  }
}

void what_if::loosen_policies() {
  constexpr double too_slow = 0.1;
  const auto off = [this](const replay_result& r) {
    return std::abs(std::log(r.per_s() / achieved()));
  };
  const auto try_with = [&](auto&& loosen) {
    if (base_.per_s() >= (1 - too_slow) * achieved()) return;
    recorded_pipeline kept = recorded_;
    loosen(recorded_);
    const replay_result looser = replayed_with({}, law_.law, {});
    if (off(looser) < 0.5 * off(base_)) {
      base_ = looser;
    } else {
      recorded_ = std::move(kept);
    }
  };
  if (recorded_.round_robin) try_with([](recorded_pipeline& p) { p.round_robin = false; });
  try_with([](recorded_pipeline& p) { p.drop_limits(); });
}

void what_if::fit_time_slice() {
  speed_law law = law_.law;
  // Try time slices of 0.5 to 8 ms, because the scheduler tick of Linux is 1, 4 or 10 ms.
  for (const double slice_ms : {0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0}) {
    law.turn_ns = 1e6 * slice_ms;
    const replay_result slower = replayed_with({}, law, {});
    if (std::abs(slower.per_s() - achieved()) >= std::abs(base_.per_s() - achieved())) continue;
    base_ = slower;
    law_.law = law;
    // Stop at the first time slice that fits. A longer one has a larger effect on predictions and
    // may fit better only by chance.
    if (std::abs(base_.per_s() / achieved() - 1) <= much_too_fast) return;
  }
}

void what_if::find_wanted_cpus() {
  const auto wanted_by = [this](const auto& all) {
    double wanted_ns = 0;
    for (const measured_work& w : all) wanted_ns += w.cpu_ns + w.queued_ns;
    return wanted_ns * achieved() / (1e9 * static_cast<double>(batches_of(recorded_)));
  };
  all_cpus_ = law_.law.cpus;
  workers_want_ = wanted_by(recorded_.works);
  consumer_wants_ = wanted_by(recorded_.steps);
}

double what_if::fewest_cpus() const {
  // If other programs used less than this share of the CPUs, assume that they were only the system
  // processes that run on every machine.
  constexpr double many = 0.1;
  const double others = recorded_.others_cpus.value_or(0);
  if (others < many * law_.law.cpus) return 0;
  return std::max(law_.law.cpus - others, many * law_.law.cpus);
}

void what_if::fit_cpus() {
  if (law_.law.cpus <= 0) return;
  const double measured = fewest_cpus();
  if (measured <= 0) {
    // Assume that other programs used CPUs only if the simulation is far too fast. A small
    // difference may come from the scheduler.
    if (fitted() <= (1 + max_off) * achieved()) return;
    // If the simulation remains too fast when the recorded waits for a CPU are included, the cause
    // is not a lack of CPUs.
    const replay_result waiting =
        replay(plan_of(with_queueing(recorded_), run_.names, law_.law, {}));
    if (waiting.per_s() > (1 + max_off) * achieved()) return;
  }
  find_wanted_cpus();
  speed_law law = law_.law;
  law.turn_ns = 0;
  law.slowing = 0;
  // If the CPUs were hardly ever idle, assume that other programs compete for them. Fit the number
  // of their threads (law.others), so that the simulation becomes as slow as the run. The upper
  // limit of this number is 1.25 times the number with which fair scheduling would leave `measured`
  // CPUs to the run. Otherwise, fit the number of CPUs that the run got (law.cpus).
  const bool compete = measured > 0 && recorded_.cpus_always_busy;
  double& fitted_value = compete ? law.others : law.cpus;
  constexpr double inexact = 1.25;
  const double most_others =
      inexact * (workers_want_ + consumer_wants_) * (all_cpus_ / std::max(measured, 1e-3) - 1);
  double slow = compete ? most_others : measured;
  double fast = compete ? 0 : all_cpus_;
  for (int tries = 0; tries < 12; ++tries) {
    fitted_value = 0.5 * (slow + fast);
    base_ = replayed_with({}, law, {});
    (base_.per_s() > achieved() ? fast : slow) = fitted_value;
  }
  law_.law = law;
  law_.slowing_sd = 0;
  others_share_ = compete ? 1 - measured / all_cpus_ : 1 - law.cpus / all_cpus_;
}

what_if::cpu_range what_if::cpus_with(const pipeline_change& change) const {
  const double recorded_cpus = law_.law.cpus;
  if (others_share_ <= 0) return {recorded_cpus, recorded_cpus};
  const double all = change.cpus.value_or(all_cpus_);
  if (law_.law.others > 0) return {all, all};
  const double more =
      static_cast<double>(threads_after(change)) / static_cast<double>(recorded_.threads());
  const double wants = workers_want_ * more + consumer_wants_;
  const double others = (workers_want_ + consumer_wants_) * (all_cpus_ / recorded_cpus - 1);
  const double obtained = recorded_cpus * all / all_cpus_;
  const double fair = all * wants / (wants + others);
  return {std::min(obtained, fair), std::max(obtained, fair)};
}

double what_if::length_ns() const {
  return achieved() > 0 ? static_cast<double>(batches_of(recorded_)) * 1e9 / achieved() : 0;
}

replay_result what_if::replayed_with(const pipeline_change& change, const speed_law& law,
                                     const assumed_servers& assumed, bool queued,
                                     unrecorded_cpu unrecorded) const {
  replay_plan planned = plan(change, law, {}, assumed, queued);
  if (law.turn_ns <= 0) return budget_.replay_within(planned, unrecorded);
  replay_result all;
  for (const double factor : slice_factors) {
    planned.speed.turn_ns = factor * law.turn_ns;
    all += budget_.replay_within(planned, unrecorded);
  }
  return all;
}

replay_plan what_if::plan(const pipeline_change& change, const speed_law& law,
                          const drawn_units& drawn, const assumed_servers& assumed,
                          bool queued) const {
  return plan_of(queued ? *queued_ : recorded_, run_.names, law, change, drawn, assumed);
}

bool what_if::is_unlike() const noexcept {
  return !(std::abs(fitted() / achieved() - 1) <= max_off);
}

std::size_t what_if::threads_after(const pipeline_change& change) const {
  std::size_t threads = 0;
  for (std::size_t s = 0; s < recorded_.stages.size(); ++s) {
    threads += threads_with(change, recorded_, s);
  }
  return threads;
}

bool what_if::beyond_seen(const pipeline_change& change) const {
  return threads_after(change) > max_threads_ || (change.own_thread && recorded_.makes_itself) ||
         (change.cpus && *change.cpus != (others_share_ > 0 ? all_cpus_ : law_.law.cpus));
}

prediction what_if::guess_under(const explanation& why, const pipeline_change& change, double cpus,
                                unrecorded_cpu unrecorded) const {
  speed_law law = law_.law;
  pipeline_change asked = change;
  if (others_share_ > 0) {
    law.cpus = cpus;
    asked.cpus.reset();
  }
  const replay_result changed = replayed_with(asked, law, why.assumed, why.queued, unrecorded);
  prediction p;
  const double gain = changed.whole_ns > 0 ? why.base.whole_ns / changed.whole_ns : 1;
  double error_left = 1;
  if (gain > 0 && !is_unlike()) {
    error_left = std::pow(why.base.per_s() / achieved(), 1 - share_of_error_kept(gain));
  }
  p.gain = gain * error_left;
  // A change of the batch size also changes the number of batches.
  const double count = why.base.batches > 0 ? changed.batches / why.base.batches : 1;
  p.per_s = achieved() * p.gain * count;
  p.low = p.high = p.per_s;
  const bool has_lock = !why.assumed.is_free() && why.assumed.operation == nullptr;
  if (has_lock && why.base.per_s() > achieved() && changed.per_s() > 0) {
    // A lock passes from one thread to the next only after that thread has woken up. The simulation
    // leaves this time out, and it may stay the same with the change.
    p.low = std::min(p.low, 1 / (1 / changed.per_s() + 1 / achieved() - 1 / why.base.per_s()));
  }
  p.run_ns = run_ns() / p.gain;
  if (why.base.steady_per_s() > 0) {
    p.steady_per_s =
        recorded_.steady_per_s * changed.steady_per_s() / why.base.steady_per_s() * error_left;
  }
  p.trend_per_s = changed.receptions.per_s() * error_left;
  p.max_out = changed.max_out;
  p.cpus_busy = changed.whole_ns > 0 ? changed.busy_ns / changed.whole_ns : 0;
  return p;
}

double what_if::gain_between_pauses(const prediction& of) const {
  const double scale = base_.whole_ns > 0 ? run_ns() / base_.whole_ns : 1;
  const double pauses_ns = scale * base_.pauses_ns;
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
  for (const explanation& why : explanations_) {
    const bool is_guess = &why == &explanations_.front() && cpus.low == cpus.high;
    if (!is_guess) assumptions.push_back({&why, cpus.low, unrecorded_cpu::stays});
    if (cpus.high > cpus.low) assumptions.push_back({&why, cpus.high, unrecorded_cpu::stays});
    if (!budget_.much_is_unrecorded()) continue;
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
  const prediction p = guess_under(explanations_.front(), change, std::sqrt(cpus.low * cpus.high));
  guesses_.add(change, p);
  return p;
}

prediction what_if::min_guess(const pipeline_change& change) const {
  prediction least = guess(change);
  const cpu_range cpus = cpus_with(change);
  for (const explanation& why : explanations_) {
    const assumed_servers& a = why.assumed;
    // There are three explanations for each rate limit, with three durations of a call. Use only
    // the one with the mean duration here. The others only widen the confidence interval.
    if (a.apart_ns > 0 && a.each_ns != a.operation->served.alone_ns) continue;
    if (&why == &explanations_.front() && cpus.low >= cpus.high) continue;
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
  const auto free = std::find_if(explanations_.begin(), explanations_.end(),
                                 [](const explanation& why) { return why.assumed.is_free(); });
  if (free == explanations_.end()) return guess(change);
  const cpu_range cpus = cpus_with(change);
  return guess_under(*free, change, std::sqrt(cpus.low * cpus.high));
}

void what_if::use_measurement(const pipeline_change& change, prediction& p) const {
  pipeline_change only_workers;
  only_workers.workers = change.workers;
  if (measured_also_.per_s <= 0 || change.workers != measured_also_.workers ||
      !(change == only_workers)) {
    return;
  }
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  if (p.per_s <= 0 || p.low <= 0) return;
  // Without chance in the recordings, both errors would be 0; then they count alike.
  const double measured_sd = std::max(model_sd, std::hypot(run_sd_, measured_also_.sd));
  const double predicted_sd = std::max(model_sd, std::log(p.high / p.low) / (2 * quantile));
  // The mean of both, weighted by their precision.
  const double weight = 1 / (measured_sd * measured_sd);
  const double other = 1 / (predicted_sd * predicted_sd);
  const double nearer =
      std::exp(std::log(measured_also_.per_s / p.per_s) * weight / (weight + other));
  p.per_s *= nearer;
  p.gain *= nearer;
  p.run_ns /= nearer;
  p.steady_per_s *= nearer;
  p.low = std::min(p.low, measured_also_.per_s * std::exp(-quantile * measured_sd));
  p.high = std::max(p.high, measured_also_.per_s * std::exp(quantile * measured_sd));
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
      recorded_.cpu_known ? (beyond ? beyond_sd : model_sd) : (beyond ? wall_beyond_sd : wall_sd);
  const double limit = explanations_.front().assumed.apart_ns > 0 ? limit_sd : 0;
  const double crowded = others_share_ > 0 ? crowded_sd : 0;
  const double sd = std::sqrt(model * model + 2 * run_sd_ * run_sd_ + drawn * drawn +
                              limit * limit + crowded * crowded);
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
                         static_cast<double>(max_threads_), change.cpus.value_or(law_.law.cpus));
  }
  use_measurement(change, p);
  return p;
}

}  // namespace lotus::tool
