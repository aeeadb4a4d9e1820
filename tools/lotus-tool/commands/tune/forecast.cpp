#include "commands/tune/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "findings/run_limits.hpp"

namespace lotus::tool {
namespace {

std::size_t in_flight_by(prefetch_rule rule, std::size_t workers, std::size_t prefetch) {
  const std::size_t by_rule[] = {workers * prefetch, workers + prefetch, prefetch};
  return by_rule[static_cast<std::size_t>(rule)];
}

/// Whether this value of a setting lets the consumer receive batches in any order. If the name of
/// the setting begins with "un", as in "unordered", its values have the opposite meaning.
bool is_unordered(const knob& k, const std::string& value) {
  const bool off = value == "0" || value == "false" || value == "False" || value == "no" ||
                   value == "off" || value == "any" || value == "unordered";
  return k.name.compare(0, 2, "un") == 0 ? !off : off;
}

double log_ratio(std::optional<std::size_t> a, std::optional<std::size_t> b) {
  const auto of = [](std::optional<std::size_t> n) {
    return std::log2(0.5 + static_cast<double>(n.value_or(1)));
  };
  return std::abs(of(a) - of(b));
}

}  // namespace

void forecast::learn(const configuration& at, std::unique_ptr<recorded_trial> trial, double per_s) {
  predicted_.clear();
  compare_predictions(at, per_s);
  why_not_ = trial->why_not;
  if (why_not_.empty() && !trial->pipeline->makes_itself) {
    const std::optional<std::size_t> workers = space_.number(at, knob_meaning::workers);
    const std::size_t seen = trial->pipeline->workers();
    if (workers && *workers != seen) {
      why_not_ = {"workers=%, but % built batches",
                  {count_word{*workers}, count_word{seen, "thread", "threads"}}};
    }
  }
  if (!why_not_.empty()) {
    trial->why_not = why_not_;
  } else {
    trials_.push_back({at, std::move(trial), per_s});
    check_prefetch(trials_.back());
  }
}

/// Compares the measured throughput of a new trial with the predictions by each prefetch_rule. The
/// trial need not be one that permits predictions. For example, if prefetch limits the batches of
/// all workers together, some workers may get no batch, so that their number is not that of the
/// setting.
void forecast::compare_predictions(const configuration& at, double per_s) {
  if (!space_.number(at, knob_meaning::prefetch) || per_s <= 0) return;
  for (std::size_t r = 0; r < contradicted_.size(); ++r) {
    const std::optional<double> predicted = simulated(at, static_cast<prefetch_rule>(r));
    if (predicted) contradicted_[r] += std::abs(std::log(per_s / *predicted));
  }
}

void forecast::check_prefetch(const learned& one) {
  const recorded_pipeline& p = *one.trial->pipeline;
  const std::optional<std::size_t> prefetch = space_.number(one.at, knob_meaning::prefetch);
  if (!prefetch || p.makes_itself || p.stages.size() > 1) return;
  const double seen = static_cast<double>(p.in_flight) / p.items_per_batch;
  for (std::size_t r = 0; r < contradicted_.size(); ++r) {
    const auto bound =
        static_cast<double>(in_flight_by(static_cast<prefetch_rule>(r), p.workers(), *prefetch));
    const bool possible = bound > seen - 0.5 && (!p.in_flight_held || bound < seen + 0.5);
    if (!possible) contradicted_[r] += std::abs(std::log(seen / std::max(1.0, bound)));
  }
}

bool forecast::is_comparable(const configuration& a, const configuration& b) const {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (space_.knobs()[k].meaning == knob_meaning::unknown && a[k] != b[k]) return false;
  }
  return true;
}

double forecast::distance(const configuration& a, const configuration& b) const {
  double sum =
      log_ratio(space_.number(a, knob_meaning::workers), space_.number(b, knob_meaning::workers)) +
      0.5 * log_ratio(space_.number(a, knob_meaning::prefetch),
                      space_.number(b, knob_meaning::prefetch));
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] == b[k] ? 0 : 0.25;
  return sum;
}

const forecast::simulation& forecast::simulation_of(std::size_t base) const {
  const configuration& at = trials_[base].at;
  std::size_t also = base;
  double most = 0;
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    if (!is_comparable(trials_[t].at, at)) continue;
    const double apart = log_ratio(space_.number(trials_[t].at, knob_meaning::workers),
                                   space_.number(at, knob_meaning::workers));
    if (apart <= most) continue;
    most = apart;
    also = t;
  }
  simulation& found = simulations_[{base, also}];
  if (found.run == nullptr) {
    const recorded_trial& trial = *trials_[base].trial;
    found.run = std::make_unique<fitted_model>(
        fit_model(trial.run, *trial.pipeline,
                  also == base ? nullptr : &*trials_[also].trial->pipeline, std::nullopt));
    pipeline_change as_it_is;
    as_it_is.no_start_up = true;
    found.base_per_s = found.run->unlimited_guess(as_it_is).trend_per_s;
  }
  return found;
}

/// Returns the prefetch_rule that the trials contradict least. A contradiction does not exclude a
/// rule, because a program may have one batch more in flight than its rule says.
prefetch_rule forecast::likeliest_rule() const {
  return static_cast<prefetch_rule>(std::min_element(contradicted_.begin(), contradicted_.end()) -
                                    contradicted_.begin());
}

std::optional<std::size_t> forecast::in_flight_of(const configuration& at,
                                                  prefetch_rule rule) const {
  const std::optional<std::size_t> prefetch = space_.number(at, knob_meaning::prefetch);
  if (!prefetch) return std::nullopt;
  const std::size_t workers =
      space_.number(at, knob_meaning::workers).value_or(trials_.front().trial->pipeline->workers());
  return in_flight_by(rule, workers, *prefetch);
}

/// Returns the factor by which the work for a batch grows with its size. Trials of two sizes show
/// which part of the work is the same for all sizes. Without them, all work is assumed to grow.
double forecast::size_factor(std::size_t knob, double before, double after) const {
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  double count = 0;
  for (const learned& one : trials_) {
    const std::optional<std::size_t> size = number_of(space_.value(one.at, knob));
    const recorded_pipeline& p = *one.trial->pipeline;
    if (!size || p.works.empty()) continue;
    double ns = 0;
    for (const measured_work& w : p.works) ns += w.cpu_ns + w.blocked_ns;
    const auto x = static_cast<double>(*size);
    const double y = ns / static_cast<double>(p.works.size());
    count += 1;
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const double spread = count * sum_xx - sum_x * sum_x;
  if (spread <= 0) return after / before;
  const double slope = std::max(0.0, (count * sum_xy - sum_x * sum_y) / spread);
  const double fixed = std::max(0.0, (sum_y - slope * sum_x) / count);
  const double factor = (fixed + slope * after) / (fixed + slope * before);
  return std::isfinite(factor) && factor > 0 ? factor : after / before;
}

bool forecast::add_knob(std::size_t knob, const configuration& at, const learned& base,
                        pipeline_change& change) const {
  const struct knob& k = space_.knobs()[knob];
  const std::string& value = space_.value(at, knob);
  const std::optional<std::size_t> number = number_of(value);
  const recorded_pipeline& p = *base.trial->pipeline;
  switch (k.meaning) {
    case knob_meaning::unknown:
      return false;
    case knob_meaning::workers:
      if (!number || *number == 0) return false;
      change.workers = number;
      change.own_thread = p.makes_itself;
      return true;
    case knob_meaning::prefetch:
      return p.stages.size() == 1 && number;
    case knob_meaning::order:
      change.unordered = is_unordered(k, value);
      return change.unordered || !is_unordered(k, space_.value(base.at, knob));
    case knob_meaning::batch_size: {
      const std::optional<std::size_t> before = number_of(space_.value(base.at, knob));
      const bool of_items = std::any_of(p.stages.begin(), p.stages.end(),
                                        [](const recorded_stage& s) { return s.of_items; });
      if (!number || *number == 0 || !before || *before == 0 || of_items) return false;
      change.batch_size =
          size_factor(knob, static_cast<double>(*before), static_cast<double>(*number));
      return true;
    }
    case knob_meaning::stage:
      if (!number || *number == 0) return false;
      change.threads[k.stage] = *number;
      return std::any_of(p.stages.begin(), p.stages.end(),
                         [&k](const recorded_stage& s) { return s.name == k.stage; });
  }
  return false;
}

std::optional<pipeline_change> forecast::change_to(const configuration& at, const learned& base,
                                                   prefetch_rule rule) const {
  pipeline_change change;
  change.no_start_up = true;
  for (std::size_t k = 0; k < at.size(); ++k) {
    if (at[k] != base.at[k] && !add_knob(k, at, base, change)) return std::nullopt;
  }
  const bool single = base.trial->pipeline->stages.size() == 1;
  if (single && at != base.at) change.in_flight = in_flight_of(at, rule);
  return change;
}

std::optional<double> forecast::per_s(const configuration& at) const {
  const auto known = predicted_.find(at);
  if (known != predicted_.end()) return known->second;
  return predicted_[at] = simulated(at, likeliest_rule());
}

std::optional<double> forecast::simulated(const configuration& at, prefetch_rule rule) const {
  std::optional<pipeline_change> change;
  std::size_t base = trials_.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < trials_.size(); ++t) {
    const double apart = distance(trials_[t].at, at);
    // Of several trials of one configuration, use the fastest: other programs disturbed it least.
    const bool again = apart == least && base < t && trials_[base].at == trials_[t].at &&
                       trials_[t].per_s > trials_[base].per_s;
    if (apart >= least && !again) continue;
    std::optional<pipeline_change> to = change_to(at, trials_[t], rule);
    if (!to) continue;
    least = apart;
    base = t;
    change = std::move(to);
  }
  if (!change) return std::nullopt;
  const simulation& from = simulation_of(base);
  if (!why_unlike(*from.run).empty() || from.base_per_s <= 0) return std::nullopt;
  const double would_be = from.run->unlimited_guess(*change).trend_per_s;
  if (would_be <= 0) return std::nullopt;
  return trials_[base].per_s * would_be / from.base_per_s;
}

}  // namespace lotus::tool
