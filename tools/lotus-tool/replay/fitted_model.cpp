#include "replay/fitted_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/parallel.hpp"
#include "replay/recorded/recorded_parts.hpp"
#include "replay/serving.hpp"

namespace lotus::tool {
namespace {

/// If the simulation of the unmodified run is too fast by more than this share, it is adjusted.
constexpr double much_too_fast = 0.03;
/// If the simulation deviates from the run by more than this share, it cannot be trusted.
constexpr double max_off = 0.25;

/// If threads share CPUs in time slices (speed_law::turn_ns), the run is simulated with the fitted
/// length of a slice times each of these factors, and the results are added up. With a single
/// length, a tiny difference could decide which thread runs next.
constexpr double slice_factors[] = {0.8, 1.0, 1.25};

/// The simulation of the unmodified run has a known error. Returns which share (0..1) of this error
/// the simulation of a changed run is expected to have as well; predictions are corrected by this
/// share: near 1 for a small change, and near one half for a large one. The half is measured: 0.53
/// on 117 pairs of runs with bench/whatif_numbers, 0.48 and 0.65 on two other sets of 68 pairs.
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

/// For a run without recorded CPU times: returns `p` with preprocessing counted as CPU time. If
/// there were fewer CPUs than threads, only the share CPUs / threads of the time counts, because
/// each thread had to wait for a CPU for the rest of the time.
recorded_pipeline on_cpus(recorded_pipeline p, double cpus) {
  const auto threads = static_cast<double>(p.threads());
  const double share = std::min(1.0, cpus / threads);
  for (measured_work& w : p.works) w = {share * w.blocked_ns, 0, 0, std::min(cpus, threads)};
  for (recorded_part& part : p.parts) {
    part.cpu_ns = share * part.blocked_ns;
    part.blocked_ns = 0;
  }
  p.shared.clear();  // assume that calls wait only for CPUs, not for each other
  return p;
}

/// Returns into how many units the simulation of a change divides each recorded unit.
std::size_t units_per_unit(const pipeline_change& change, const recorded_pipeline& p) {
  const bool divides = p.stages.size() == 1 && !p.stages.front().of_items;
  return divides ? std::max<std::size_t>(1, change.ready_samples) : 1;
}

/// Returns `p` with the time in which threads waited for a CPU counted as blocked time.
recorded_pipeline with_queueing(recorded_pipeline p) {
  const auto keep = [](auto& what) { what.blocked_ns += what.queued_ns; };
  for (measured_work& w : p.works) keep(w);
  for (measured_work& w : p.steps) keep(w);
  return p;
}

/// Returns the relative standard error of the mean interval between batches. To estimate it,
/// divides each epoch into ten parts and compares these parts.
double run_sd_of(const run_data& run) {
  constexpr std::size_t parts = 10;
  std::vector<double> lengths_ns;
  const std::vector<batch>& all = run.batches.all();
  for (std::size_t at = 0; at < all.size();) {
    std::vector<std::int64_t> times;
    const std::uint32_t epoch = all[at].epoch;
    for (; at < all.size() && all[at].epoch == epoch; ++at) {
      const std::optional<std::int64_t> time_ns = run.batches.left_ns(all[at]);
      if (time_ns) times.push_back(*time_ns);
    }
    std::sort(times.begin(), times.end());
    if (times.size() <= 2 * parts) continue;
    for (std::size_t p = 0; p < parts; ++p) {
      const std::size_t first = p * (times.size() - 1) / parts;
      const std::size_t last = (p + 1) * (times.size() - 1) / parts;
      lengths_ns.push_back(static_cast<double>(times[last] - times[first]) /
                           static_cast<double>(last - first));
    }
  }
  // If the run is too short for an estimate, use a typical error.
  if (lengths_ns.size() < parts) return 0.02;
  const auto n = static_cast<double>(lengths_ns.size());
  const double mean = std::accumulate(lengths_ns.begin(), lengths_ns.end(), 0.0) / n;
  double squares = 0;
  for (const double ns : lengths_ns) squares += (ns - mean) * (ns - mean);
  return mean > 0 ? std::sqrt(squares / (n - 1) / n) / mean : 0;
}

/// Returns the relative standard error of the mean work on a batch or item.
double error_of_mean(const recorded_pipeline& p) {
  double sum = 0;
  double squares = 0;
  for (const measured_work& w : p.works) {
    const double ns = w.cpu_ns + w.blocked_ns;
    sum += ns;
    squares += ns * ns;
  }
  const auto n = static_cast<double>(p.works.size());
  if (n < 2 || sum <= 0) return 0;
  return std::sqrt(std::max(0.0, n * squares / (sum * sum) - 1) / n);
}

}  // namespace

double fitted_model::run_ns() const noexcept {
  const double simulations =
      speed.law.turn_ns > 0 ? static_cast<double>(std::size(slice_factors)) : 1;
  return achieved() > 0 ? base.batches / simulations * 1e9 / achieved() : 0;
}

double fitted_model::length_ns() const {
  return achieved() > 0 ? static_cast<double>(batches_of(pipeline)) * 1e9 / achieved() : 0;
}

std::size_t fitted_model::threads_after(const pipeline_change& change) const {
  std::size_t threads = 0;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    threads += threads_with(change, pipeline, s);
  }
  return threads;
}

bool fitted_model::beyond_seen(const pipeline_change& change) const {
  return threads_after(change) > max_threads || (change.own_thread && pipeline.makes_itself) ||
         (change.cpus && *change.cpus != (share_of_others > 0 ? all_cpus : speed.law.cpus));
}

bool fitted_model::is_unlike() const noexcept {
  return !(std::abs(fitted() / achieved() - 1) <= max_off);
}

replay_plan fitted_model::plan(const pipeline_change& change, const speed_law& law,
                               const drawn_units& drawn, const assumed_servers& assumed,
                               bool queued) const {
  return plan_of(queued ? *with_queues : pipeline, *names, law, change, drawn, assumed);
}

replay_result fitted_model::replayed_with(const pipeline_change& change, const speed_law& law,
                                          const assumed_servers& assumed, bool queued,
                                          unrecorded_cpu unrecorded) const {
  replay_plan planned = plan(change, law, {}, assumed, queued);
  if (law.turn_ns <= 0) return budget.replay_within(planned, unrecorded);
  replay_result all;
  for (const double factor : slice_factors) {
    planned.speed.turn_ns = factor * law.turn_ns;
    all += budget.replay_within(planned, unrecorded);
  }
  return all;
}

prediction fitted_model::guess_under(const explanation& why, const pipeline_change& change,
                                     double cpus, unrecorded_cpu unrecorded) const {
  speed_law law = speed.law;
  pipeline_change asked = change;
  if (share_of_others > 0) {
    law.cpus = cpus;
    asked.cpus.reset();
  }
  const bool as_it_is = change == pipeline_change{} && unrecorded == unrecorded_cpu::stays;
  const replay_result changed =
      as_it_is ? why.base : replayed_with(asked, law, why.assumed, why.queued, unrecorded);
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
        pipeline.steady_per_s * changed.steady_per_s() / why.base.steady_per_s() * error_left;
  }
  p.trend_per_s = changed.receptions.per_s() * error_left;
  p.max_out = changed.max_out / units_per_unit(change, pipeline);
  p.cpus_busy = changed.whole_ns > 0 ? changed.busy_ns / changed.whole_ns : 0;
  return p;
}

double fitted_model::gain_between_pauses(const prediction& of) const {
  const double scale = base.whole_ns > 0 ? run_ns() / base.whole_ns : 1;
  const double pauses_ns = scale * base.pauses_ns;
  const double before_ns = run_ns() - pauses_ns;
  const double after_ns = of.run_ns - pauses_ns;
  return before_ns > 0 && after_ns > 0 ? before_ns / after_ns : of.gain;
}

prediction fitted_model::guess(const pipeline_change& change) const {
  const cpu_range cpus = cpus_with(change);
  return guess_under(explanations.front(), change, std::sqrt(cpus.low * cpus.high));
}

prediction fitted_model::unlimited_guess(const pipeline_change& change) const {
  const auto free = std::find_if(explanations.begin(), explanations.end(),
                                 [](const explanation& why) { return why.assumed.is_free(); });
  if (free == explanations.end()) return guess(change);
  const cpu_range cpus = cpus_with(change);
  return guess_under(*free, change, std::sqrt(cpus.low * cpus.high));
}

double fitted_model::min_gain(const pipeline_change& change, double likely) const {
  double least = is_bracket(change) ? std::min(likely, 1.0) : likely;
  const cpu_range cpus = cpus_with(change);
  for (const explanation& why : explanations) {
    const assumed_servers& a = why.assumed;
    // There are three explanations for each rate limit, with three durations of a call. Use only
    // the one with the mean duration here. The others only widen the confidence interval.
    if (a.apart_ns > 0 && a.each_ns != a.operation->calls->overlap().alone_ns) continue;
    if (&why == &explanations.front() && cpus.low >= cpus.high) continue;
    least = std::min(least, guess_under(why, change, cpus.low).gain);
  }
  return least;
}

namespace {

// The steps of fit_model(), in this order.

/// Drops rules that the run did not obey.
void loosen_policies(fitted_model& m) {
  constexpr double too_slow = 0.1;
  const auto off = [&m](const replay_result& r) {
    return std::abs(std::log(r.per_s() / m.achieved()));
  };
  const auto try_with = [&](auto&& loosen) {
    if (m.base.per_s() >= (1 - too_slow) * m.achieved()) return;
    recorded_pipeline kept = m.pipeline;
    loosen(m.pipeline);
    const replay_result looser = m.replayed_with({}, m.speed.law, {});
    if (off(looser) < 0.5 * off(m.base)) {
      m.base = looser;
    } else {
      m.pipeline = std::move(kept);
    }
  };
  if (m.pipeline.round_robin) try_with([](recorded_pipeline& p) { p.round_robin = false; });
  try_with([](recorded_pipeline& p) { p.drop_limits(); });
}

/// Sets the length of time slices with which the simulation is as slow as the run.
void fit_time_slice(fitted_model& m) {
  const auto off = [&m](const replay_result& r) { return std::abs(r.per_s() - m.achieved()); };
  replay_result nearest = m.base;
  speed_law tried = m.speed.law;
  double turn_ns = tried.turn_ns;
  // Try time slices of 0.5 to 8 ms, because the scheduler tick of Linux is 1, 4 or 10 ms.
  for (const double slice_ms : {0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0}) {
    tried.turn_ns = 1e6 * slice_ms;
    const replay_result slower = m.replayed_with({}, tried, {});
    if (off(slower) >= off(nearest)) continue;
    nearest = slower;
    turn_ns = tried.turn_ns;
    // Stop at the first time slice that fits. A longer one has a larger effect on predictions and
    // may fit better only by chance.
    if (off(nearest) <= much_too_fast * m.achieved()) break;
  }
  // Time slices that explain less than a fifth of the difference are not its cause.
  if (off(nearest) > 0.8 * off(m.base)) return;
  m.base = nearest;
  m.speed.law.turn_ns = turn_ns;
}

/// Computes how many CPUs the workers and the consumer would have used if they had never waited for
/// a CPU.
void find_wanted_cpus(fitted_model& m) {
  const auto wanted_by = [&m](const auto& all) {
    double wanted_ns = 0;
    for (const measured_work& w : all) wanted_ns += w.cpu_ns + w.queued_ns;
    return wanted_ns * m.achieved() / (1e9 * static_cast<double>(batches_of(m.pipeline)));
  };
  m.all_cpus = m.speed.law.cpus;
  m.workers_want = wanted_by(m.pipeline.works);
  m.consumer_wants = wanted_by(m.pipeline.steps);
}

/// Estimates how many CPUs the run got if other programs used the rest.
void fit_cpus(fitted_model& m) {
  // Other programs took no CPU from work that hardly ever waited for one.
  const measured_work all = m.pipeline.all_work();
  const bool waited = !m.pipeline.cpu_known || all.queued_ns >= 0.05 * all.all_ns();
  if (m.speed.law.cpus <= 0 || !(waited || m.is_unlike())) return;
  const double measured = m.fewest_cpus();
  if (measured <= 0) {
    // Assume that other programs used CPUs only if the simulation is far too fast. A small
    // difference may come from the scheduler.
    if (m.fitted() <= (1 + max_off) * m.achieved()) return;
    // If the simulation remains too fast when the recorded waits for a CPU are included, the cause
    // is not a lack of CPUs.
    const replay_result waiting =
        replay(plan_of(with_queueing(m.pipeline), *m.names, m.speed.law, {}));
    if (waiting.per_s() > (1 + max_off) * m.achieved()) return;
  }
  find_wanted_cpus(m);
  speed_law law = m.speed.law;
  law.turn_ns = 0;
  law.slowing = 0;
  // If the CPUs were hardly ever idle, assume that other programs compete for them. Fit the number
  // of their threads (law.others), so that the simulation becomes as slow as the run. The upper
  // limit of this number is 1.25 times the number with which fair scheduling would leave `measured`
  // CPUs to the run. Otherwise, fit the number of CPUs that the run got (law.cpus).
  const bool compete = measured > 0 && m.pipeline.cpus_always_busy;
  double& fitted_value = compete ? law.others : law.cpus;
  constexpr double inexact = 1.25;
  const double most_others =
      inexact * (m.workers_want + m.consumer_wants) * (m.all_cpus / std::max(measured, 1e-3) - 1);
  double slow = compete ? most_others : measured;
  double fast = compete ? 0 : m.all_cpus;
  for (int tries = 0; tries < 12; ++tries) {
    fitted_value = 0.5 * (slow + fast);
    m.base = m.replayed_with({}, law, {});
    (m.base.per_s() > m.achieved() ? fast : slow) = fitted_value;
  }
  m.speed.law = law;
  m.speed.slowing_sd = 0;
  m.share_of_others = compete ? 1 - measured / m.all_cpus : 1 - law.cpus / m.all_cpus;
}

/// Returns whether threads waited for CPUs, but for less than a fifth of their time.
bool waits_little_for_cpus(const fitted_model& m) {
  constexpr double little = 0.2;
  const measured_work all = sum_of(m.pipeline.works);
  return m.share_of_others <= 0 && all.queued_ns > 0 && all.queued_ns < little * all.all_ns();
}

/// If the simulation under an explanation is too fast, counts waits for a CPU as blocked time,
/// provided that the simulation then fits better. The reason: a thread that waits for a CPU also
/// delays the threads that wait for its lock, and waits for what other programs use stay the same.
/// Waits for CPUs of which the run's own threads use over a quarter arise anew in the simulation.
void count_queueing(fitted_model& m, explanation& why) {
  if (why.assumed.is_free() && m.base.busy_ns > 0.25 * m.base.whole_ns) return;
  if (why.base.per_s() <= (1 + much_too_fast) * m.achieved() || !waits_little_for_cpus(m)) return;
  if (!m.with_queues) m.with_queues = with_queueing(m.pipeline);
  const replay_result queued = m.replayed_with({}, m.speed.law, why.assumed, true);
  // In the simulation `queued`, waits for a CPU count as blocked time; in `why.base`, they are left
  // out. Use `queued` only if its throughput is nearer to the measured throughput, on a logarithmic
  // scale.
  if (queued.per_s() * why.base.per_s() <= m.achieved() * m.achieved()) return;
  why.queued = true;
  why.base = queued;
}

/// Keeps the explanations that also predict the throughput of another recording.
void keep_what_explains(fitted_model& m, const recorded_pipeline& also) {
  pipeline_change other;
  if (m.pipeline.stages.size() == 1 || m.pipeline.stages.front().pool) {
    other.workers = also.workers();
    if (also.in_flight_held && also.stages.size() == 1) other.prefetch = also.prefetch();
  }
  for (const recorded_stage& s : also.stages) {
    if (!other.workers) other.threads[s.name] = s.threads;
  }
  std::vector<std::pair<double, explanation>> tried;
  for (const explanation& why : m.explanations) {
    const double predicted = m.guess_under(why, other, m.speed.law.cpus).per_s;
    tried.emplace_back(std::abs(std::log(predicted / also.achieved_per_s)), why);
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Two equal runs may differ in throughput by this share: at least 4 %, or 2.33 standard errors,
  // which chance exceeds in only 2 % of the cases.
  constexpr double usual_noise = 0.04;
  const double noise =
      std::max(usual_noise, 2.33 * std::hypot(error_of_mean(m.pipeline), error_of_mean(also)));
  // If even the best explanation predicts a throughput of the run `also` that is wrong by more than
  // about this share, keep all explanations.
  constexpr double max_deviation = 0.2;
  if (tried.empty() || tried.front().first > max_deviation) return;
  m.explanations.clear();
  for (const auto& [off, why] : tried) {
    if (off <= std::max(noise, 1.5 * tried.front().first)) m.explanations.push_back(why);
  }
}

void find_explanations(fitted_model& m, const recorded_pipeline* also) {
  constexpr double like_it = 0.1;
  const bool both = also != nullptr && also->workers() != m.pipeline.workers() &&
                    !also->makes_itself && !m.pipeline.makes_itself;
  // Wait samples say what is a lock. What they do not explain is inferred from the calls.
  std::vector<assumed_servers> all = m.sampled_explanations();
  const bool sampled = !all.empty();
  std::vector<const shared_operation*> every;
  every.reserve(m.pipeline.shared.size());
  std::vector<const shared_operation*> unexplained;
  for (const shared_operation& op : m.pipeline.shared) {
    every.push_back(&op);
    if (!sampled || !m.samples_explain(op)) unexplained.push_back(&op);
  }
  // Whether an assumption is the first of the sampled ones, or that nothing is limited.
  const auto is_decided = [&m](const assumed_servers& a) {
    return a.is_free() || (a.servers == 1 && a.operation->name == m.pipeline.lock->operation);
  };
  for (assumed_servers& inferred : both ? explanations_of(unexplained, m.pipeline, *also)
                                        : explanations_of(unexplained, m.pipeline)) {
    if (!sampled || !is_decided(inferred)) all.push_back(std::move(inferred));
  }
  std::vector<replay_result> replayed(all.size(), m.base);
  for_each_in_parallel(all.size(), unlimited_threads, [&](std::size_t i) {
    if (!all[i].is_free()) replayed[i] = m.replayed_with({}, m.speed.law, all[i]);
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    explanation one{all[i], replayed[i]};
    count_queueing(m, one);
    const bool is_like = std::abs(std::log(one.base.per_s() / m.fitted())) <= like_it;
    if (all[i].is_free() || is_like) m.explanations.push_back(one);
  }
  if (both) keep_what_explains(m, *also);
  if (!m.explanations.empty()) return;
  m.explanations.push_back({{}, m.base});
  // No assumption about a limit reproduces the run. Add an explanation for each limit that the
  // recording may show, so that the confidence interval becomes wide enough.
  for (const assumed_servers& assumed : explanations_of(every, m.pipeline)) {
    if (assumed.is_free()) continue;
    const replay_result limited = m.replayed_with({}, m.speed.law, assumed);
    if (limited.per_s() > 0) m.explanations.push_back({assumed, limited});
  }
}

}  // namespace

fitted_model fit_model(const run_data& run, recorded_pipeline recorded,
                       const recorded_pipeline* also, std::optional<double> cpus) {
  fitted_model m;
  m.names = &run.names;
  m.max_threads = recorded.threads();
  m.pipeline =
      !recorded.cpu_known && cpus ? on_cpus(std::move(recorded), *cpus) : std::move(recorded);
  m.run_sd = run_sd_of(run);
  std::vector<const recorded_pipeline*> all{&m.pipeline};
  if (also != nullptr) {
    all.push_back(also);
    m.max_threads = std::max(m.max_threads, also->threads());
    if (also->has_workers() && m.pipeline.has_workers() && !also->makes_itself) {
      m.measured_also = {also->workers(), also->achieved_per_s, error_of_mean(*also)};
    }
  }
  m.speed =
      estimate_speed(all, cpus.value_or(m.pipeline.cpu_known ? m.pipeline.cpus.value_or(0) : 0));
  m.budget = cpu_budget(m.pipeline, m.plan({}, m.speed.law, {}, {}, false), m.length_ns());
  m.base = m.replayed_with({}, m.speed.law, {});
  m.replayed_per_s = m.base.per_s();
  loosen_policies(m);
  if (m.pipeline.cpu_known && m.base.per_s() > (1 + much_too_fast) * m.achieved()) {
    if (m.fewest_cpus() <= 0) fit_time_slice(m);
    fit_cpus(m);
  }
  find_explanations(m, also);
  return m;
}

}  // namespace lotus::tool
