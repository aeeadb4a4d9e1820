#include "replay/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/replay.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {
namespace {

/// Errors of the model itself, as found on pairs of runs (bench/whatif_numbers): standard
/// deviations of the logarithm of what it says ÷ what is.
constexpr double model_sd = 0.012;
constexpr double beyond_sd = 0.03;  ///< more threads at once than were seen
constexpr double wall_sd = 0.02;    ///< where CPU time was not recorded
constexpr double wall_beyond_sd = 0.12;

constexpr double much_too_fast = 0.03;  ///< of a replay: more than a run differs from the next
constexpr double most_off = 0.25;       ///< of a replay that anything may rest on

/// How much of what the replay gets wrong of the run as it was it gets wrong of a changed one: all
/// near it, half far from it, as found on 117 pairs of runs (bench/whatif_numbers; 0.53 of it, in
/// two other sets of 68 pairs 0.48 and 0.65).
/// @param gain  of the rate, as replayed.
double share_of_error_kept(double gain) {
  constexpr double far_from_it = 0.5;
  constexpr double near = 0.2;  // of the logarithm
  return far_from_it + (1 - far_from_it) * std::exp(-std::abs(std::log(gain)) / near);
}

std::size_t threads_of(const recorded_pipeline& p) {
  return std::accumulate(p.stages.begin(), p.stages.end(), std::size_t{0},
                         [](std::size_t n, const recorded_stage& s) { return n + s.threads; });
}

/// Preprocessing was on the CPU all the time, as far as there were CPUs for all threads.
recorded_pipeline on_cpus(recorded_pipeline p, double cpus) {
  const auto threads = static_cast<double>(threads_of(p));
  const double share = std::min(1.0, cpus / threads);
  for (measured_work& w : p.works) w = {share * w.blocked_ns, 0, 0, std::min(cpus, threads)};
  for (recorded_part& part : p.parts) {
    part.cpu_ns = share * part.blocked_ns;
    part.blocked_ns = 0;
  }
  return p;
}

/// A share of the waiting for CPUs becomes work that waits for something else.
recorded_pipeline with_queueing(const recorded_pipeline& recorded, double share) {
  recorded_pipeline p = recorded;
  const auto keep = [share](auto& what) { what.blocked_ns += share * what.queued_ns; };
  for (measured_work& w : p.works) keep(w);
  for (measured_work& w : p.steps) keep(w);
  for (recorded_part& part : p.parts) keep(part);
  return p;
}

/// Blocks of neighbours, which are alike, keep together.
class block_sampler {
 public:
  explicit block_sampler(const recorded_pipeline& p) : p_(p) {}

  drawn_units draw() {
    drawn_units drawn(p_.units.size());
    std::iota(drawn.begin(), drawn.end(), std::uint32_t{0});
    for (const planned_epoch& e : p_.epochs) {
      const std::uint32_t count = e.end_unit - e.first_unit;
      const auto length = std::max<std::uint32_t>(
          1, std::min<std::uint32_t>(count / 5, static_cast<std::uint32_t>(std::sqrt(count))));
      for (std::uint32_t at = 0; at < count; at += length) {
        const std::uint32_t from =
            std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random_);
        for (std::uint32_t i = 0; i < length && at + i < count; ++i) {
          drawn[e.first_unit + at + i] = e.first_unit + (from + i) % count;
        }
      }
    }
    return drawn;
  }

 private:
  const recorded_pipeline& p_;
  std::mt19937_64 random_{1};
};

bool has_items(const recorded_pipeline& p) {
  return std::any_of(p.stages.begin(), p.stages.end(),
                     [](const recorded_stage& s) { return s.of_items; });
}

/// From one part of a run to the next, for the mean of the whole.
double run_sd_of(const run_data& run) {
  constexpr std::size_t parts = 10;
  std::vector<double> lengths_ns;
  const std::vector<batch>& all = run.batches.all();
  for (std::size_t at = 0; at < all.size();) {
    std::vector<std::int64_t> times;
    const std::uint32_t epoch = all[at].epoch;
    for (; at < all.size() && all[at].epoch == epoch; ++at) {
      const std::optional<std::int64_t> time_ns = run.batches.hand_over_ns(all[at]);
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
  if (lengths_ns.size() < parts) return 0.02;  // a short run: what others have
  const auto n = static_cast<double>(lengths_ns.size());
  const double mean = std::accumulate(lengths_ns.begin(), lengths_ns.end(), 0.0) / n;
  double squares = 0;
  for (const double ns : lengths_ns) squares += (ns - mean) * (ns - mean);
  return mean > 0 ? std::sqrt(squares / (n - 1) / n) / mean : 0;
}

}  // namespace

what_if::what_if(const run_data& run, recorded_pipeline recorded, const recorded_pipeline* also,
                 std::optional<double> cpus)
    : run_(run), recorded_(std::move(recorded)), most_threads_(threads_of(recorded_)) {
  if (!recorded_.cpu_known && cpus) recorded_ = on_cpus(std::move(recorded_), *cpus);
  std::vector<const recorded_pipeline*> all{&recorded_};
  if (also != nullptr) {
    all.push_back(also);
    most_threads_ = std::max(most_threads_, threads_of(*also));
  }
  law_ = estimate_speed(all, cpus.value_or(recorded_.cpu_known ? recorded_.cpus.value_or(0) : 0));
  base_ = replayed_with({}, law_.law);
  replayed_per_s_ = base_.per_s();
  if (recorded_.cpu_known && base_.per_s() > (1 + much_too_fast) * achieved()) {
    fit_turns();
    fit_queueing();
  }
  run_sd_ = run_sd_of(run);
}

void what_if::fit_turns() {
  speed_law law = law_.law;
  // A tick of Linux takes 1, 4 or 10 ms.
  for (const double turn_ms : {0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0}) {
    law.turn_ns = 1e6 * turn_ms;
    const replay_result slower = replayed_with({}, law);
    if (std::abs(slower.per_s() - achieved()) >= std::abs(base_.per_s() - achieved())) continue;
    base_ = slower;
    law_.law = law;
    // A longer one may fit better by chance, and changes more of what is asked.
    if (std::abs(base_.per_s() / achieved() - 1) <= much_too_fast) return;
  }
}

void what_if::fit_queueing() {
  // Less may be the scheduler's doing; then keeping it as it was would be worse than nothing.
  if (fitted() <= (1 + most_off) * achieved()) return;
  const recorded_pipeline recorded = recorded_;
  double low = 0;
  double high = 1;
  for (int tries = 0; tries < 8; ++tries) {
    queueing_kept_ = tries == 0 ? 1 : 0.5 * (low + high);
    recorded_ = with_queueing(recorded, queueing_kept_);
    base_ = replayed_with({}, law_.law);
    const bool too_fast = base_.per_s() > achieved();
    if (tries == 0 && too_fast) return;
    (too_fast ? low : high) = queueing_kept_;
  }
}

replay_result what_if::replayed_with(const pipeline_change& change, const speed_law& law) const {
  replay_plan planned = plan(change, law, {});
  if (law.turn_ns <= 0) return replay(planned);
  replay_result all;
  for (const double factor : {0.8, 1.0, 1.25}) {
    planned.speed.turn_ns = factor * law.turn_ns;
    all += replay(planned);
  }
  return all;
}

replay_plan what_if::plan(const pipeline_change& change, const speed_law& law,
                          const drawn_units& drawn) const {
  return plan_of(recorded_, run_.names, law, change, drawn);
}

bool what_if::is_unlike() const noexcept {
  return !(std::abs(fitted() / achieved() - 1) <= most_off);
}

bool what_if::beyond_seen(const pipeline_change& change) const {
  std::size_t threads = 0;
  for (std::size_t s = 0; s < recorded_.stages.size(); ++s) {
    threads += threads_with(change, recorded_, s);
  }
  return threads > most_threads_ || (change.own_thread && recorded_.makes_itself) ||
         (change.cpus && *change.cpus != law_.law.cpus);
}

prediction what_if::guess(const pipeline_change& change) const {
  const replay_result changed = replayed_with(change, law_.law);
  prediction p;
  const double gain_of_rate = base_.per_s() > 0 ? changed.per_s() / base_.per_s() : 1;
  double error_left = 1;
  if (gain_of_rate > 0 && !is_unlike()) {
    error_left = std::pow(fitted() / achieved(), 1 - share_of_error_kept(gain_of_rate));
  }
  p.per_s = achieved() * gain_of_rate * error_left;
  p.low = p.high = p.per_s;
  if (changed.whole_ns > 0) p.gain = base_.whole_ns / changed.whole_ns * error_left;
  p.most_out = changed.most_out;
  return p;
}

prediction what_if::predict(const pipeline_change& change) const {
  prediction p = guess(change);
  if (change == pipeline_change{}) return p;
  const bool beyond = beyond_seen(change);
  const double model =
      recorded_.cpu_known ? (beyond ? beyond_sd : model_sd) : (beyond ? wall_beyond_sd : wall_sd);
  const double drawn = drawn_sd(change);
  const double sd = std::sqrt(model * model + 2 * run_sd_ * run_sd_ + drawn * drawn);
  constexpr double quantile = 1.645;  // 95 % of a normal distribution lie below
  p.low = p.per_s * std::exp(-quantile * sd);
  p.high = p.per_s * std::exp(quantile * sd);
  if (is_bracket(change)) p.low = std::min(p.low, achieved() * std::exp(-quantile * sd));
  return p;
}

double what_if::drawn_sd(const pipeline_change& change) const {
  block_sampler blocks(recorded_);
  std::mt19937_64 random(2);
  std::normal_distribution<double> slowing(law_.law.slowing, law_.slowing_sd);
  std::uniform_real_distribution<double> turn_factor(0.8, 1.25);
  const std::size_t draws =
      std::clamp<std::size_t>(400'000 / std::max<std::size_t>(1, recorded_.units.size()), 8, 100);
  const bool items = has_items(recorded_);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    const drawn_units drawn = items ? drawn_units{} : blocks.draw();
    speed_law law = law_.law;
    law.slowing = std::max(0.0, slowing(random));
    law.turn_ns *= turn_factor(random);
    const double before = replay(plan({}, law, drawn)).per_s();
    const double after = replay(plan(change, law, drawn)).per_s();
    if (before <= 0 || after <= 0) continue;
    const double log_gain = std::log(after / before);
    sum += log_gain;
    squares += log_gain * log_gain;
  }
  const auto n = static_cast<double>(draws);
  return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
}

}  // namespace lotus::tool
