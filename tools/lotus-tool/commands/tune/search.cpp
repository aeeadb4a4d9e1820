#include "commands/tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <thread>
#include <utility>

namespace lotus::tool {
namespace {

constexpr double worth_running = 1.03;  ///< minimum predicted gain for running a configuration
constexpr double as_good = 0.98;  ///< minimum share of the best throughput that counts as equal

constexpr double worth_deciding = 1.05;  ///< possible gain above which runs are repeated

/// A predicted throughput was wrong if |log(measured ÷ predicted)| is larger than this.
constexpr double far_off = 0.2;

/// Returns the index of the first value that is at least twice as large as the one at `at`, or else
/// of the largest value. If the values are no numbers, returns the next index.
std::size_t doubled(const std::vector<std::string>& values, std::size_t at) {
  const std::optional<std::size_t> number = number_of(values[at]);
  std::size_t next = at + 1;
  while (number && next + 1 < values.size() && number_of(values[next]) &&
         *number_of(values[next]) < 2 * *number) {
    ++next;
  }
  return next;
}

constexpr double normal_reach = 1.645;  ///< half width of a 90 % interval in standard deviations

/// Returns half the width of the confidence interval of the logarithm of the throughput.
double log_reach(const throughput& t) {
  if (!std::isfinite(t.high) || t.low <= 0) return 1;
  return std::log(t.high / t.low) / 2;
}

}  // namespace

double search::score(const configuration& at, double per_s) const {
  // Batches of different sizes are compared by their numbers of samples.
  return per_s * static_cast<double>(space_.number(at, knob_meaning::batch_size).value_or(1));
}

bool search::was_run(const configuration& at) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const tune_run& r) { return r.at == at; });
}

const measured_configuration* search::measured(const configuration& at) const {
  const auto found = std::find_if(measured_.begin(), measured_.end(),
                                  [&](const measured_configuration& m) { return m.at == at; });
  return found == measured_.end() ? nullptr : &*found;
}

bool search::reaches_target(const measured_configuration& one) const {
  return limits_.target_per_s && one.rate.per_s >= as_good * *limits_.target_per_s;
}

void search::add(tune_run run) {
  runs_.push_back(std::move(run));
  const tune_run& added = runs_.back();
  if (!added.measured) return;
  const auto same = std::find_if(measured_.begin(), measured_.end(),
                                 [&](const measured_configuration& m) { return m.at == added.at; });
  measured_configuration& all = same == measured_.end() ? measured_.emplace_back() : *same;
  all = {added.at};
  std::vector<throughput> trials;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    if (runs_[r].at != added.at || !runs_[r].measured) continue;
    if (trials.empty()) all.predicted = runs_[r].predicted;
    if (trials.empty() || runs_[r].measured->per_s > runs_[all.fastest].measured->per_s) {
      all.fastest = r;
    }
    trials.push_back(*runs_[r].measured);
    all.bytes = std::max(all.bytes, runs_[r].trial.bytes);
  }
  all.runs = trials.size();
  all.rate = pooled(trials);
}

const measured_configuration* search::best() const {
  double most = 0;
  bool reached = false;
  for (const measured_configuration& m : measured_) {
    most = std::max(most, score(m));
    reached = reached || reaches_target(m);
  }
  const measured_configuration* found = nullptr;
  const auto is_cheaper = [this](const measured_configuration& a, const measured_configuration& b) {
    const std::size_t threads_a = space_.threads(a.at);
    const std::size_t threads_b = space_.threads(b.at);
    if (threads_a != threads_b) return threads_a < threads_b;
    // Two runs of a program differ a little in memory, so a difference below 5 % does not count.
    return static_cast<double>(a.bytes) < 0.95 * static_cast<double>(b.bytes);
  };
  for (const measured_configuration& m : measured_) {
    if (reached ? !reaches_target(m) : score(m) < as_good * most) continue;
    if (found == nullptr || is_cheaper(m, *found)) found = &m;
  }
  return found;
}

bool search::is_disturbed(const tune_run& run) {
  constexpr double much = 0.1;
  constexpr double long_wait = 0.05;
  static const auto cpus = static_cast<double>(std::max(1U, std::thread::hardware_concurrency()));
  return run.trial.other_cpus >= much * cpus && run.trial.waited >= long_wait;
}

/// Estimates how much the throughput differs between runs of a configuration, as the standard
/// deviation of its logarithm. Since few runs are repeated, the estimate includes a usual value,
/// which counts as much as one repeated run.
double search::spread() const {
  constexpr double usual = 0.01;
  constexpr double usual_if_disturbed = 0.04;
  const bool disturbed = std::any_of(runs_.begin(), runs_.end(), is_disturbed);
  const double assumed = disturbed ? usual_if_disturbed : usual;
  double squares = assumed * assumed;
  double count = 1;
  for (const measured_configuration& m : measured_) {
    double sum = 0;
    double sum_of_squares = 0;
    for (const tune_run& run : runs_) {
      if (run.at != m.at || !run.measured) continue;
      const double x = std::log(run.measured->per_s);
      sum += x;
      sum_of_squares += x * x;
    }
    const auto n = static_cast<double>(m.runs);
    squares += std::max(0.0, sum_of_squares - sum * sum / n);
    count += n - 1;
  }
  return std::sqrt(squares / count);
}

throughput search::with_spread(const measured_configuration& one) const {
  const double between = normal_reach * spread() / std::sqrt(static_cast<double>(one.runs));
  // If there are several runs, `within` already contains the differences between them.
  const double within = log_reach(one.rate);
  const double reach = one.runs == 1 ? std::hypot(between, within) : std::max(between, within);
  throughput wide = one.rate;
  wide.low = wide.per_s * std::exp(-reach);
  wide.high = wide.per_s * std::exp(reach);
  return wide;
}

throughput search::with_spread(const tune_run& run) const {
  return with_spread(measured_configuration{run.at, *run.measured, run.trial.bytes, 1});
}

/// Returns the largest factor by which a configuration may be better than best(). It may be above
/// 1, because both measurements are uncertain.
double search::possible_gain(const measured_configuration& one) const {
  const measured_configuration& first = *best();
  const double reach = std::hypot(log_reach(with_spread(first)), log_reach(with_spread(one)));
  return score(one) / score(first) * std::exp(reach);
}

const measured_configuration* search::rival() const {
  const measured_configuration* const first = best();
  const measured_configuration* found = nullptr;
  for (const measured_configuration& m : measured_) {
    if (&m == first || possible_gain(m) < 1) continue;
    if (found == nullptr || possible_gain(m) > possible_gain(*found)) found = &m;
  }
  return found;
}

bool search::is_decided() const {
  const measured_configuration* const second = rival();
  return second == nullptr ? best() != nullptr : possible_gain(*second) <= worth_deciding;
}

bool search::predictions_hold() const {
  std::size_t wrong = 0;
  for (const measured_configuration& m : measured_) {
    if (!m.predicted) continue;
    const double off = std::log(runs_[m.fastest].measured->per_s / *m.predicted);
    wrong = std::abs(off) > far_off ? wrong + 1 : 0;
  }
  return wrong < 2;
}

/// Returns a configuration that ran once, was much slower than predicted, and may have been slowed
/// down by other programs. If no other programs were busy, the run need not be repeated.
std::optional<next_run> search::surprising_step() const {
  for (const measured_configuration& m : measured_) {
    const bool slow = m.predicted && std::log(m.rate.per_s / *m.predicted) < -far_off;
    if (slow && m.runs == 1 && is_disturbed(runs_[m.fastest])) return next_run{m.at, m.predicted};
  }
  return std::nullopt;
}

/// If all runs had the same batch size, returns the best configuration, but with the batch size
/// that differs most from this size. Runs of a single size do not show which part of the work grows
/// with the batch size.
std::optional<next_run> search::other_size_step() const {
  if (!predictions_hold()) return std::nullopt;
  const configuration& now = best()->at;
  for (std::size_t k = 0; k < space_.knobs().size(); ++k) {
    if (space_.knobs()[k].meaning != knob_meaning::batch_size) continue;
    const bool seen = std::any_of(runs_.begin(), runs_.end(), [&](const tune_run& r) {
      return r.at[k] != runs_.front().at[k];
    });
    if (seen) continue;
    const std::vector<std::string>& values = space_.knobs()[k].values;
    const auto apart = [&](std::size_t value) {
      const auto log_size = [&](std::size_t of) {
        return std::log(1.0 + static_cast<double>(number_of(values[of]).value_or(0)));
      };
      return std::abs(log_size(value) - log_size(now[k]));
    };
    next_run next{now};
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (apart(v) > apart(next.at[k])) next.at[k] = v;
    }
    if (next.at != now) return next;
  }
  return std::nullopt;
}

bool search::is_searched(std::size_t knob) const {
  if (!predictions_hold()) return true;
  configuration other = best()->at;
  for (std::size_t value = 0; value < space_.knobs()[knob].values.size(); ++value) {
    other[knob] = value;
    // Configurations that have run are ignored, because a prediction for them is always possible.
    if (!was_run(other) && predictions_.per_s(other)) return false;
  }
  return true;
}

/// Returns the configurations that were not run and have a prediction.
std::vector<next_run> search::predicted_runs() const {
  std::vector<next_run> found;
  if (!predictions_hold()) return found;
  for (const configuration& at : space_.all()) {
    if (was_run(at)) continue;
    const std::optional<double> per_s = predictions_.per_s(at);
    if (per_s) found.push_back({at, per_s});
  }
  return found;
}

/// Returns the configuration with the highest prediction if it is worth running. If several are
/// nearly as good, returns the one with the fewest threads.
std::optional<next_run> search::predicted_step() const {
  const measured_configuration& now = *best();
  const std::vector<next_run> likely = predicted_runs();
  double most = 0;
  for (const next_run& one : likely) most = std::max(most, score(one));
  const bool reached = reaches_target(now);
  if (!reached && most <= worth_running * score(now)) return std::nullopt;
  const next_run* found = nullptr;
  for (const next_run& one : likely) {
    const bool good = limits_.target_per_s && most >= *limits_.target_per_s
                          ? *one.predicted >= *limits_.target_per_s
                          : score(one) >= as_good * most;
    if (!good) continue;
    if (found == nullptr || space_.threads(one.at) < space_.threads(found->at)) found = &one;
  }
  if (found == nullptr) return std::nullopt;
  const bool cheaper = space_.threads(found->at) < space_.threads(now.at);
  return reached && !cheaper ? std::nullopt : std::optional(*found);
}

/// Whether the best configuration was also measured with another value of a setting (knob), and was
/// about as good with it.
/// @param value  index of the other value.
bool search::is_as_good(std::size_t knob, std::size_t value) const {
  configuration other = best()->at;
  other[knob] = value;
  const measured_configuration* const with_it = measured(other);
  return with_it != nullptr && score(*with_it) >= as_good * score(*best());
}

/// Returns the next run that doubles the values of several settings together, because some
/// settings, such as threads and the length of a queue, have an effect only together. Further
/// doublings follow as long as each one raises the throughput.
std::optional<next_run> search::joint_step() const {
  if (reaches_target(*best())) return std::nullopt;
  configuration at = space_.start();
  while (true) {
    next_run next{at};
    std::size_t changed = 0;
    for (std::size_t k = 0; k < space_.knobs().size(); ++k) {
      const std::vector<std::string>& values = space_.knobs()[k].values;
      if (!is_searched(k) || !number_of(values[at[k]]) || at[k] + 1 == values.size()) continue;
      next.at[k] = doubled(values, at[k]);
      ++changed;
    }
    if (changed < 2) return std::nullopt;
    if (!was_run(next.at)) return next;
    const measured_configuration* const before = measured(at);
    const measured_configuration* const after = measured(next.at);
    if (before == nullptr || after == nullptr) return std::nullopt;
    if (score(*after) < worth_running * score(*before)) return std::nullopt;
    at = next.at;
  }
}

/// Returns the next value to try for a setting (knob) while the other settings keep the values of
/// the best configuration; nullopt if there is no value left to try.
/// @param between  whether to try values between the best one and one that was worse.
std::optional<std::size_t> search::step_along(std::size_t knob, bool between) const {
  const measured_configuration& now = *best();
  const std::vector<std::string>& values = space_.knobs()[knob].values;
  const std::size_t at = now.at[knob];
  const auto tried = [&](std::size_t value) {
    configuration other = now.at;
    other[knob] = value;
    return was_run(other);
  };
  std::size_t above = at + 1;
  while (above < values.size() && !tried(above)) ++above;
  std::size_t below = at;
  while (below > 0 && !tried(below - 1)) --below;  // below - 1 is the nearest lower value that ran
  const std::optional<std::size_t> number = number_of(values[at]);
  if (!between) {
    if (above == values.size() && at + 1 < values.size()) {
      return doubled(values, at);
    }
    if (below == 0 && at > 0) {
      std::size_t next = at - 1;
      while (number && next > 0 && number_of(values[next]) &&
             2 * *number_of(values[next]) > *number) {
        --next;
      }
      return next;
    }
    return std::nullopt;
  }
  // If a higher value is as good as the best one, values in between are not tried.
  const bool flat = above < values.size() && is_as_good(knob, above);
  if (!flat && above < values.size() && above - at > 1) return at + (above - at) / 2;
  if (below > 0 && at - (below - 1) > 1) return below - 1 + (at - (below - 1)) / 2;
  return std::nullopt;
}

/// Returns the factor by which the newest change of a setting (knob) raised the throughput, or 1 if
/// the gain is not significant; nullopt if no two configurations that ran differ in this setting
/// alone.
std::optional<double> search::newest_gain(std::size_t knob) const {
  for (auto newer = measured_.rbegin(); newer != measured_.rend(); ++newer) {
    const measured_configuration* before = nullptr;
    for (auto older = std::next(newer); older != measured_.rend(); ++older) {
      configuration same = older->at;
      same[knob] = newer->at[knob];
      if (same != newer->at) continue;
      if (before == nullptr || score(*older) > score(*before)) before = &*older;
    }
    if (before == nullptr) continue;
    const double gain = score(*newer) / score(*before);
    const double chance = std::exp(std::hypot(log_reach(newer->rate), log_reach(before->rate)));
    return gain >= std::max(worth_running, chance) ? gain : 1;
  }
  return std::nullopt;
}

/// Returns the settings (knobs) in the order in which the search tries them: first the one whose
/// newest change gained most, then those not tried yet, at the end those whose newest change gained
/// nothing.
std::vector<std::size_t> search::promising_knobs() const {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t k = 0; k < space_.knobs().size(); ++k) {
    if (!is_searched(k)) continue;
    order.emplace_back(newest_gain(k).value_or(worth_running), k);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> knobs;
  knobs.reserve(order.size());
  for (const auto& [gain, k] : order) knobs.push_back(k);
  return knobs;
}

std::optional<next_run> search::knob_step() const {
  const measured_configuration& now = *best();
  if (reaches_target(now)) return std::nullopt;
  const std::vector<std::size_t> knobs = promising_knobs();
  for (const bool between : {false, true}) {
    for (const std::size_t k : knobs) {
      const std::optional<std::size_t> value = step_along(k, between);
      if (!value) continue;
      next_run next{now.at};
      next.at[k] = *value;
      return next;
    }
  }
  return std::nullopt;
}

/// Returns a configuration with fewer threads that is predicted to be as good as the best.
std::optional<next_run> search::cheaper_step() const {
  constexpr double surely_as_good = 0.99;
  double most = 0;
  for (const measured_configuration& m : measured_) most = std::max(most, score(m));
  std::size_t threads = space_.threads(best()->at);
  std::optional<next_run> found;
  for (const next_run& one : predicted_runs()) {
    if (space_.threads(one.at) >= threads || score(one) < surely_as_good * most) continue;
    threads = space_.threads(one.at);
    found = one;
  }
  return found;
}

/// Returns the best configuration or its rival, whichever ran less often, if it is unclear which is
/// better and the difference matters.
std::optional<next_run> search::repeated_step() const {
  if (is_decided()) return std::nullopt;
  const measured_configuration* const first = best();
  const measured_configuration* const second = rival();
  const measured_configuration& again = first->runs <= second->runs ? *first : *second;
  return next_run{again.at, again.rate.per_s};
}

std::optional<next_run> search::next() {
  if (runs_.empty()) return next_run{space_.start()};
  const bool failed = !runs_.front().measured;
  if (failed || runs_.size() >= limits_.runs) {
    ended_ = failed ? search_end::first_run_failed : search_end::runs_used_up;
    return std::nullopt;
  }
  std::optional<next_run> step = surprising_step();
  // Predictions need trials of two batch sizes, so this step precedes those that predict.
  if (!step) step = other_size_step();
  if (!step) step = predicted_step();
  if (!step) step = joint_step();
  if (!step) step = knob_step();
  if (!step) step = cheaper_step();
  if (!step) step = repeated_step();
  if (step) return step;
  ended_ = measured_.size() == space_.size() ? search_end::every_configuration_run
           : reaches_target(*best())         ? search_end::target_reached
                                             : search_end::nothing_better;
  return std::nullopt;
}

configurations_left search::left() const {
  const std::vector<configuration> all = space_.all();
  const std::vector<next_run> predicted = predicted_runs();
  configurations_left left{predicted.size()};
  left.unknown = all.size() - predicted.size();
  for (const configuration& at : all) left.unknown -= was_run(at) ? 1 : 0;
  left.predictions_hold = predictions_hold();
  left.why_unknown = predictions_.why_not();
  const auto best = std::max_element(
      predicted.begin(), predicted.end(),
      [this](const next_run& a, const next_run& b) { return score(a) < score(b); });
  if (best != predicted.end()) left.best = *best;
  return left;
}

}  // namespace lotus::tool
