#include "commands/tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verdict/diagnosis_text.hpp"

namespace lotus::tool {
namespace {

constexpr double worth_running = 1.03;  ///< minimum predicted gain for running a configuration
constexpr double as_good = 0.98;  ///< minimum share of the best throughput that counts as equal

/// If |log(measured ÷ predicted)| is larger, the prediction was wrong.
constexpr double far_off = 0.2;

bool overlap(const throughput& a, const throughput& b) {
  return a.low <= b.high && b.low <= a.high;
}

}  // namespace

double search::score(const configuration& at, double per_s) const {
  // Batches of different sizes are compared by their numbers of samples.
  return per_s * static_cast<double>(space_.number(at, knob_meaning::batch_size).value_or(1));
}

bool search::was_run(const configuration& at) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const tune_run& r) { return r.at == at; });
}

bool search::reaches_target(const measured_configuration& one) const {
  return limits_.target_per_s && one.rate.per_s >= as_good * *limits_.target_per_s;
}

void search::add(tune_run run) {
  runs_.push_back(std::move(run));
  const tune_run& added = runs_.back();
  if (!added.measured) return;
  std::vector<throughput> trials;
  measured_configuration all;
  all.at = added.at;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    if (runs_[r].at != added.at || !runs_[r].measured) continue;
    if (trials.empty()) all.predicted = runs_[r].predicted;
    if (trials.empty() || runs_[r].measured->per_s > runs_[all.fastest].measured->per_s) {
      all.fastest = r;
    }
    trials.push_back(*runs_[r].measured);
    all.bytes = std::max(all.bytes, runs_[r].bytes);
  }
  all.runs = trials.size();
  all.rate = pooled(trials);
  const auto same = std::find_if(measured_.begin(), measured_.end(),
                                 [&](const measured_configuration& m) { return m.at == all.at; });
  if (same == measured_.end()) {
    measured_.push_back(all);
  } else {
    *same = all;
  }
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

const measured_configuration* search::rival() const {
  const measured_configuration* const first = best();
  const measured_configuration* found = nullptr;
  for (const measured_configuration& m : measured_) {
    if (first == nullptr || &m == first || !overlap(m.rate, first->rate)) continue;
    if (found == nullptr || score(m) > score(*found)) found = &m;
  }
  return found;
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

/// Returns a configuration that ran once and was much slower than predicted, to run it again.
std::optional<next_run> search::surprising_step() const {
  for (const measured_configuration& m : measured_) {
    const bool slow = m.predicted && std::log(m.rate.per_s / *m.predicted) < -far_off;
    if (slow && m.runs == 1) return next_run{m.at, m.predicted};
  }
  return std::nullopt;
}

bool search::is_searched(std::size_t knob) const {
  if (!predictions_hold()) return true;
  configuration other = best()->at;
  for (std::size_t value = 0; value < space_.knobs()[knob].values.size(); ++value) {
    other[knob] = value;
    if (value != best()->at[knob] && predictions_.per_s(other)) return false;
  }
  return true;
}

/// Returns the configuration with the highest prediction if it is worth running. If several are
/// nearly as good, returns the one with the fewest threads.
std::optional<next_run> search::predicted_step() const {
  const measured_configuration* const now = best();
  if (now == nullptr || !predictions_hold()) return std::nullopt;
  std::vector<next_run> likely;
  double most = 0;
  for (const configuration& at : space_.all()) {
    if (was_run(at)) continue;
    const std::optional<double> per_s = predictions_.per_s(at);
    if (!per_s) continue;
    likely.push_back({at, per_s});
    most = std::max(most, score(at, *per_s));
  }
  const bool with_target = limits_.target_per_s.has_value();
  if (!(with_target && reaches_target(*now)) && most <= worth_running * score(*now)) {
    return std::nullopt;
  }
  const next_run* found = nullptr;
  for (const next_run& one : likely) {
    const bool good = with_target && most >= *limits_.target_per_s
                          ? *one.predicted >= *limits_.target_per_s
                          : score(one.at, *one.predicted) >= as_good * most;
    if (!good) continue;
    if (found == nullptr || space_.threads(one.at) < space_.threads(found->at)) found = &one;
  }
  const bool cheaper = found != nullptr && space_.threads(found->at) < space_.threads(now->at);
  if (found == nullptr || (with_target && reaches_target(*now) && !cheaper)) return std::nullopt;
  return *found;
}

/// Whether the best configuration was also measured with this value of a knob, and was as good.
bool search::is_as_good(std::size_t knob, std::size_t value) const {
  configuration other = best()->at;
  other[knob] = value;
  return std::any_of(measured_.begin(), measured_.end(), [&](const measured_configuration& m) {
    return m.at == other && score(m) >= as_good * score(*best());
  });
}

/// Returns the next value to try for a knob while the others keep the best values; nullopt if there
/// is none.
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
      std::size_t next = at + 1;
      while (number && next + 1 < values.size() && number_of(values[next]) &&
             *number_of(values[next]) < 2 * *number) {
        ++next;
      }
      return next;
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
  // A value that is as good as the best one but costs more shows that there is nothing in between.
  const bool flat = above < values.size() && is_as_good(knob, above);
  if (!flat && above < values.size() && above - at > 1) return at + (above - at) / 2;
  if (below > 0 && at - (below - 1) > 1) return below - 1 + (at - (below - 1)) / 2;
  return std::nullopt;
}

std::optional<next_run> search::knob_step() const {
  const measured_configuration* const now = best();
  if (now == nullptr || reaches_target(*now)) return std::nullopt;
  for (const bool between : {false, true}) {
    for (std::size_t k = 0; k < space_.knobs().size(); ++k) {
      if (!is_searched(k)) continue;
      const std::optional<std::size_t> value = step_along(k, between);
      if (!value) continue;
      next_run next{now->at, std::nullopt};
      next.at[k] = *value;
      return next;
    }
  }
  return std::nullopt;
}

/// Returns a configuration with fewer threads that is predicted to be as good as the best.
std::optional<next_run> search::cheaper_step() const {
  const measured_configuration* const now = best();
  if (now == nullptr || !predictions_hold()) return std::nullopt;
  double most = 0;
  for (const measured_configuration& m : measured_) most = std::max(most, score(m));
  std::optional<next_run> found;
  for (const configuration& at : space_.all()) {
    if (was_run(at) || space_.threads(at) >= space_.threads(now->at)) continue;
    if (found && space_.threads(at) >= space_.threads(found->at)) continue;
    const std::optional<double> per_s = predictions_.per_s(at);
    constexpr double surely_as_good = 0.99;
    if (per_s && score(at, *per_s) >= surely_as_good * most) found = next_run{at, per_s};
  }
  return found;
}

/// Returns the best configuration or its rival, whichever ran less often, if it is unclear which is
/// better and the difference matters.
std::optional<next_run> search::repeated_step() const {
  const measured_configuration* const first = best();
  const measured_configuration* const second = rival();
  if (first == nullptr || second == nullptr) return std::nullopt;
  const auto is_exact = [](const throughput& t) {
    return t.low >= as_good * t.per_s && t.high * as_good <= t.per_s;
  };
  const double ratio = score(*second) / score(*first);
  const bool equal = ratio >= as_good && ratio <= 1 / as_good;
  if (equal && is_exact(first->rate) && is_exact(second->rate)) return std::nullopt;
  const measured_configuration& again = first->runs <= second->runs ? *first : *second;
  return next_run{again.at, again.rate.per_s};
}

std::optional<next_run> search::next() {
  if (runs_.empty()) return next_run{space_.start(), std::nullopt};
  if (runs_.size() >= limits_.runs) {
    ended_because_ = limits_.runs == 1 ? "the only run is used"
                                       : "all " + std::to_string(limits_.runs) + " runs are used";
    return std::nullopt;
  }
  std::optional<next_run> step = surprising_step();
  if (!step) step = predicted_step();
  if (!step) step = knob_step();
  if (!step) step = cheaper_step();
  if (!step) step = repeated_step();
  if (step) return step;
  const bool all_run = measured_.size() == space_.size();
  const measured_configuration* const now = best();
  ended_because_ = all_run ? "every configuration was run"
                   : now != nullptr && reaches_target(*now)
                       ? "the target is reached"
                       : "no configuration that is left promises more than 3 %";
  return std::nullopt;
}

std::vector<std::string> search::not_run() const {
  std::size_t predicted = 0;
  std::size_t unknown = 0;
  next_run most;
  for (const configuration& at : space_.all()) {
    if (was_run(at)) continue;
    const std::optional<double> per_s = predictions_hold() ? predictions_.per_s(at) : std::nullopt;
    if (!per_s) {
      ++unknown;
      continue;
    }
    ++predicted;
    if (!most.predicted || score(at, *per_s) > score(most.at, *most.predicted)) most = {at, per_s};
  }
  const auto counted = [](std::size_t n) {
    return std::to_string(n) + (n == 1 ? " configuration" : " configurations");
  };
  std::vector<std::string> sentences;
  if (predicted > 0) {
    sentences.push_back(counted(predicted) + ": predicted at most " +
                        three_digits(*most.predicted) + " batches/s (" + space_.text(most.at) +
                        ")");
  }
  if (unknown > 0) {
    const std::string& why = predictions_.why_not();
    sentences.push_back(counted(unknown) + ": not predicted" +
                        (!predictions_hold() ? " (predictions were off by more than 20 % twice)"
                         : why.empty()       ? ""
                                             : " (" + why + ")") +
                        ", and no step of the search led there");
  }
  return sentences;
}

}  // namespace lotus::tool
