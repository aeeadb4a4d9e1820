#include "findings/gains.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "base/parallel.hpp"
#include "findings/run_limits.hpp"
#include "replay/change_text.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"

namespace lotus::tool {
namespace {

constexpr double a_bit_faster = 1.25;
constexpr std::size_t max_workers = 16;
constexpr std::size_t much_prefetch = 16;

bool has_prefetch(const recorded_pipeline& p) {
  return !p.makes_itself && p.stages.size() == 1 && p.in_flight_held;
}

/// Returns the number of workers of the run as recorded.
std::size_t workers_now(const recorded_pipeline& p) {
  return p.makes_itself ? 1 : p.workers();
}

/// Returns the number of workers to try after `workers`. Large numbers are tried in steps of a
/// quarter, because each simulation takes longer the more workers it has.
std::size_t next_number(std::size_t workers, std::size_t now) {
  const std::size_t next = workers + (workers < max_workers ? 1 : workers / 4);
  return workers < now ? std::min(next, now) : next;
}

/// Returns the settings to try, such as numbers of workers; those with fewer threads come first.
std::vector<pipeline_change> settings_of(const what_if& run, bool unordered) {
  const recorded_pipeline& p = run.recorded();
  std::vector<pipeline_change> all;
  for (const std::size_t more : {2U, 4U}) {
    if (!p.budget_held) break;
    all.emplace_back().in_flight = more * p.batches_in_flight();
    all.back().unordered = unordered;
  }
  if (p.stages.size() > 1 && !p.makes_itself && !p.stages.front().pool) {
    for (const recorded_stage& s : p.stages) {
      if (s.pool || !may_need_threads(p, {}, static_cast<std::size_t>(&s - p.stages.data()))) {
        continue;
      }
      // Threads that wait for each other may be faster if there are fewer of them.
      std::vector<std::size_t> numbers;
      if (p.lock) {
        for (std::size_t fewer = 1; fewer < s.threads; fewer = next_number(fewer, s.threads)) {
          numbers.push_back(fewer);
        }
      }
      numbers.insert(numbers.end(), {s.threads + 1, 2 * s.threads, 4 * s.threads});
      for (const std::size_t wanted : numbers) {
        all.emplace_back().threads[s.name] = wanted;
        all.back().unordered = unordered;
      }
    }
    return all;
  }
  // If the number of CPUs is unknown, try at most twice the workers; more would be a guess.
  const std::size_t now = workers_now(p);
  const std::size_t most = run.cpus_known() ? std::max(max_workers, now) : 2 * now;
  for (std::size_t workers = 1; workers <= most; workers = next_number(workers, now)) {
    for (const std::size_t prefetch : {0U, 1U, 2U, 4U}) {  // 0: the prefetch depth as it is
      // A smaller prefetch depth saves memory but is no faster, so it is not worth a suggestion.
      if (prefetch > 0 && (!has_prefetch(p) || prefetch <= p.prefetch())) continue;
      pipeline_change& change = all.emplace_back();
      change.unordered = unordered;
      change.own_thread = p.makes_itself;
      if (prefetch > 0) change.prefetch = prefetch;
      if (p.makes_itself || workers != now) change.workers = workers;
    }
  }
  return all;
}

struct found_setting {
  pipeline_change change;
  double gain = 1;
  double best = 1;  ///< largest gain of all settings that were compared
};

/// Returns how many workers keep all CPUs busy: one per CPU, and more if they are blocked for a
/// part of their time (Goetz et al., Java Concurrency in Practice, section 8.2).
double workers_for_cpus(const what_if& run) {
  double cpu_ns = 1;
  double blocked_ns = 0;
  for (const measured_work& w : run.recorded().works) {
    cpu_ns += w.cpu_ns;
    blocked_ns += w.blocked_ns;
  }
  return std::ceil(run.law().law.cpus * (1 + blocked_ns / cpu_ns));
}

/// Returns false if a change raises a number of threads above the number that keeps all CPUs busy,
/// although the run would be limited by its CPUs. Additional threads would not help then.
bool is_sensible(const what_if& run, const pipeline_change& change) {
  const recorded_pipeline& p = run.recorded();
  if (!p.cpu_known || run.law().law.cpus <= 0) return true;
  const double enough = workers_for_cpus(run);
  const auto is_more = [enough](std::size_t now, std::size_t wanted) {
    return wanted > now && static_cast<double>(wanted) > enough;
  };
  bool more = change.workers && is_more(workers_now(p), *change.workers);
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    more = more || is_more(p.stages[s].threads, threads_with(change, p, s));
  }
  return !more || !is_limited_by_cpus(run, change);
}

bool has_fewer_threads(const recorded_pipeline& p, const pipeline_change& change) {
  if (change.workers) return *change.workers < workers_now(p);
  return std::any_of(p.stages.begin(), p.stages.end(), [&](const recorded_stage& s) {
    const auto of = change.threads.find(s.name);
    return of != change.threads.end() && of->second < s.threads;
  });
}

/// Returns the cheapest setting that is_sensible() accepts and that gains nearly the most: at most
/// 1 % less, or 5 % less with fewer workers than recorded, or if no batch is built ahead now.
/// Settings within these margins count as equal: if workers share CPUs, the order in which batches
/// end is random, so the gain varies by a few percent.
found_setting cheapest_of(const what_if& run, std::vector<found_setting> tried) {
  while (!tried.empty()) {
    double best = 1;
    for (const found_setting& one : tried) best = std::max(best, one.gain);
    const auto is_nearly_best = [&](const found_setting& one) {
      const bool fewer =
          run.recorded().makes_itself || has_fewer_threads(run.recorded(), one.change);
      return fewer ? one.gain >= 1 + worthwhile && one.gain * (1 + worthwhile) >= best
                   : one.gain >= 0.99 * best;
    };
    const auto cheapest = std::find_if(tried.begin(), tried.end(), is_nearly_best);
    if (cheapest == tried.end()) break;
    cheapest->best = best;
    if (is_sensible(run, cheapest->change)) return *cheapest;
    tried.erase(cheapest);
  }
  return {};
}

struct best_settings {
  found_setting surely;   ///< setting with the highest lower bound of the predicted gain
  found_setting perhaps;  ///< setting with the largest expected gain
};

best_settings best_settings_of(const what_if& run, bool unordered) {
  std::vector<found_setting> likely;
  for (const pipeline_change& change : settings_of(run, unordered)) {
    likely.push_back({change, run.guess(change).gain});
  }
  best_settings found;
  found.perhaps = cheapest_of(run, likely);
  if (found.perhaps.gain < 1 + worthwhile) return found;
  // Find the settings that certainly gain. To save simulations, try settings with additional
  // threads only if the setting with the most threads certainly gains.
  const recorded_pipeline& p = run.recorded();
  const bool more_may_be_sure =
      run.min_gain(likely.back().change, likely.back().gain) >= 1 + worthwhile;
  const std::size_t now = workers_now(p);
  std::vector<found_setting> sure;
  for (const found_setting& one : likely) {
    const bool more = (one.change.workers && *one.change.workers > now) ||
                      (!one.change.threads.empty() && !has_fewer_threads(p, one.change));
    if (one.gain < 1 + worthwhile || (more && !more_may_be_sure)) continue;
    sure.push_back({one.change, run.min_gain(one.change, one.gain)});
  }
  found.surely = cheapest_of(run, std::move(sure));
  return found;
}

/// Finds the best settings. Out-of-order delivery changes the order of batches in training, so it
/// is included only if it gains 3 % more than the best settings without it.
best_settings best_settings_of(const what_if& run) {
  const recorded_pipeline& p = run.recorded();
  std::vector<best_settings> both(p.ordered && !p.makes_itself ? 2 : 1);
  for_each_in_parallel(both.size(), both.size(), [&](std::size_t unordered) {
    both[unordered] = best_settings_of(run, unordered == 1);
  });
  best_settings chosen = both.front();
  const best_settings& last = both.back();
  if (last.surely.gain > 1.03 * chosen.surely.best) chosen.surely = last.surely;
  if (last.perhaps.gain > 1.03 * chosen.perhaps.best) chosen.perhaps = last.perhaps;
  return chosen;
}

/// Predicts changes and suggests those that gain.
class suggester {
 public:
  suggester(const what_if& run, std::optional<double> consumer_per_s)
      : run_(run), consumer_per_s_(consumer_per_s) {}

  suggestion of(const pipeline_change& change) const {
    suggestion m{change, run_.predict(change), run_.achieved(),
                 change_text(change, run_.recorded())};
    bound(m.would_be, change);
    const phrase words = bound_words(m.would_be);
    m.only_if = !words.empty();
    if (m.only_if) m.condition = phrase{"if "}.add(words);
    return m;
  }

  /// Returns the list that a suggestion belongs to. If it may gain nothing, explains why.
  std::vector<suggestion>& list_for(suggestion& m) {
    if (m.would_be.low > run_.achieved() && !m.only_if) return found.suggestions;
    if (!m.only_if) explain_doubt(m);
    return found.possible;
  }

  /// Suggests a change unless it gains less than 5 %.
  void add(const pipeline_change& change) {
    suggestion m = of(change);
    if (m.would_be.per_s < (1 + worthwhile) * run_.achieved()) return;
    std::vector<suggestion>& list = list_for(m);
    pipeline_change with_faster_step = change;
    with_faster_step.step = 1 / a_bit_faster;
    if (change.faster.empty() && &list == &found.suggestions &&
        run_.guess(with_faster_step).gain > 1.15 * m.would_be.gain) {
      m.note = {"; the consumer then limits the run"};
    }
    list.push_back(std::move(m));
  }

  suggested_changes found;

 private:
  /// Limits a prediction to the throughput that the consumer can reach.
  void bound(prediction& p, const pipeline_change& change) const {
    if (!consumer_per_s_ || change.step != 1 || change.batch_size != 1) return;
    const double most = std::max(run_.achieved(), *consumer_per_s_);
    if (p.per_s > most) {
      p.gain *= most / p.per_s;
      p.run_ns *= p.per_s / most;
      p.per_s = most;
    }
    p.low = std::min(p.low, most);
    p.high = std::min(p.high, most);
  }

  /// Says why a change may gain nothing, and how the user can find out.
  void explain_doubt(suggestion& m) const {
    const std::size_t now = workers_now(run_.recorded());
    m.only_if = true;
    if (run_.is_bracket(m.change)) {
      m.condition = {"if CPUs are free"};
      m.note = {". The number of CPUs is not in the logs: pass it with 'whatif --recorded-cpus N'"};
    } else if (others_used_cpus(run_)) {
      m.condition = {"if other programs stop using the CPUs"};
      m.note = {". Record again without other programs"};
    } else if ((m.change.workers && *m.change.workers > now) || !m.change.threads.empty()) {
      const bool workers = m.change.workers.has_value();
      m.condition = {"if the % do not wait for each other at a lock or disk",
                     {name_word{workers ? "workers" : "threads"}}};
      m.note = {". To find out, record a run with % and pass it to 'whatif --also'",
                {count_word{2 * now, "", workers ? "workers" : "threads there"}}};
    } else {
      m.only_if = false;
      m.condition = {"the 90 %% interval includes a gain of zero"};
    }
  }

  const what_if& run_;
  std::optional<double> consumer_per_s_;
};

/// Returns the assumptions behind the prediction for `change` that the recording cannot confirm.
std::vector<phrase> assumptions_of(const what_if& run, const pipeline_change& change) {
  std::vector<phrase> all;
  const recorded_pipeline& p = run.recorded();
  const bool more = run.beyond_seen(change);
  if (more && p.cpu_known && run.law().law.cpus > 0 && !run.law().levels_seen) {
    all.push_back(slowing_words(run));
  }
  if (more && !p.cpu_known) {
    all.push_back(
        {"workers do not wait for each other; CPU times, which would show it, were not recorded"});
  }
  if (!p.makes_itself && !p.in_flight_held && !change.prefetch && more) {
    all.push_back(
        {"at least two batches per worker may be in flight; this run never reached its limit"});
  }
  const phrase lock = held_lock_words(run);
  if ((more || run.has_unknown_lock()) && !lock.empty()) all.push_back(lock);
  if (change.unordered) all.push_back({"training may receive batches in another order"});
  return all;
}

void add_setting(const what_if& run, suggester& to) {
  auto [surely, perhaps] = best_settings_of(run);
  // More batches in flight cost little, so a smaller number is suggested only if it is surer.
  if (run.recorded().on_demand && surely.gain >= 1 + worthwhile &&
      run.min_gain(perhaps.change, perhaps.gain) * (1 + worthwhile) >= surely.gain) {
    surely = perhaps;
  }
  if (surely.gain >= 1 + worthwhile) to.add(surely.change);
  if (!to.found.possible.empty()) return;
  // Nearly as many workers that gain as much say nothing more.
  pipeline_change alike = perhaps.change;
  alike.workers = surely.change.workers;
  const double sure = alike == surely.change ? run.guess(surely.change).gain : surely.gain;
  if (perhaps.gain > (1 + worthwhile) * sure) to.add(perhaps.change);
}

/// Returns the change of the setting that a verdict names; nullopt if it names none.
std::optional<pipeline_change> setting_of(verdict is, const recorded_pipeline& p) {
  pipeline_change change;
  if (is == verdict::order_bound) {
    change.unordered = true;
  } else if (is == verdict::prefetch_bound && has_prefetch(p)) {
    change.prefetch = std::max<std::size_t>(2, 2 * p.prefetch());
  } else if (is == verdict::prefetch_bound && p.budget_held) {
    change.in_flight = 2 * p.batches_in_flight();
  } else {
    return std::nullopt;
  }
  return change;
}

/// Removes the suggestion to make a stage faster if making a single operation of the stage faster
/// gains about as much.
void remove_covered_stages(const recorded_pipeline& p, const name_table& names,
                           std::vector<suggestion>& work) {
  if (p.stages.size() < 2) return;
  constexpr double as_good = 0.98;
  std::set<std::string> covered;
  for (const auto& [operation, stage] : stages_of_operations(p, names)) {
    const auto gain_of = [&work](const std::string& name) {
      const auto at = std::find_if(work.begin(), work.end(), [&](const suggestion& m) {
        return m.change.faster.count(name) != 0;
      });
      return at == work.end() ? 0 : at->would_be.gain;
    };
    if (operation != stage && gain_of(operation) >= as_good * gain_of(stage)) covered.insert(stage);
  }
  const auto is_covered = [&](const suggestion& m) {
    return covered.count(m.change.faster.begin()->first) != 0;
  };
  work.erase(std::remove_if(work.begin(), work.end(), is_covered), work.end());
}

}  // namespace

std::vector<bound_gain> gains_of(const what_if& run) {
  const recorded_pipeline& p = run.recorded();
  std::vector<bound_gain> all;
  const auto add = [&](verdict bound, const std::string& stage, const pipeline_change& change) {
    all.push_back({bound, stage, run.gain_between_pauses(run.guess(change))});
  };
  pipeline_change change;
  if (p.ordered && !p.makes_itself) {
    change.unordered = true;
    add(verdict::order_bound, {}, change);
  }
  if (has_prefetch(p) || p.budget_held) {
    change = {};
    (p.budget_held ? change.in_flight : change.prefetch) =
        much_prefetch * (p.budget_held ? p.batches_in_flight() : 1);
    add(verdict::prefetch_bound, {}, change);
  }
  if (!p.makes_itself) {
    change = {};
    change.no_start_up = true;
    add(verdict::start_up_bound, {}, change);
  }
  const bool one_stage = p.stages.size() == 1 && p.stages.front().stage == preprocess_stage;
  if (one_stage || p.makes_itself) {
    change = {};
    change.preprocessing_faster = a_bit_faster;
    add(verdict::preprocessing_bound, {}, change);
  } else {
    for (const recorded_stage& s : p.stages) {
      change = {};
      change.faster[s.name] = a_bit_faster;
      const bool workers = s.stage == preprocess_stage;
      add(workers ? verdict::preprocessing_bound : verdict::stage_bound,
          workers ? std::string() : s.name, change);
    }
  }
  if (p.has_consumer) {
    change = {};
    change.step = 1 / a_bit_faster;
    add(verdict::consumer_bound, {}, change);
  }
  return all;
}

bound_gain largest_gain(const std::vector<bound_gain>& gains) {
  double best = 0;
  for (const bound_gain& g : gains) best = std::max(best, g.gain);
  if (best < 1 + worthwhile) return {verdict::balanced, {}, best};
  constexpr double a_point = 0.01;
  return *std::find_if(gains.begin(), gains.end(),
                       [&](const bound_gain& g) { return g.gain >= best - a_point; });
}

std::string text_of(const suggestion& m) {
  phrase all{"%: % -> % (90 %% interval: % to %)",
             {name_word{m.what}, count_word{m.now_per_s}, rate_word{m.would_be.per_s},
              count_word{m.would_be.low}, count_word{m.would_be.high}}};
  if (!m.condition.empty()) all.add(", ").add(m.condition);
  return text_of(all.add(m.note));
}

suggested_changes suggest(const what_if& run, const run_data& data, verdict is,
                          std::optional<double> consumer_per_s,
                          const std::vector<pipeline_change>& together) {
  suggester suggest(run, consumer_per_s);
  suggested_changes& found = suggest.found;
  add_setting(run, suggest);
  std::vector<suggestion> work;
  for (const std::string& name : names_of_work(run.recorded(), data.names)) {
    suggestion one;
    one.change.faster[name] = 2;
    one.would_be = run.guess(one.change);
    if (one.would_be.gain >= 1 + worthwhile) work.push_back(std::move(one));
  }
  remove_covered_stages(run.recorded(), data.names, work);
  std::stable_sort(work.begin(), work.end(), [](const suggestion& a, const suggestion& b) {
    return a.would_be.gain > b.would_be.gain;
  });
  for (const suggestion& one : work) {
    if (found.suggestions.size() == 3) break;
    // If operations were recorded, suggest one of them instead of preprocessing as a whole.
    if (one.change.faster.count("preprocess") != 0 && work.size() > 1) continue;
    suggest.add(one.change);
  }
  if (found.suggestions.empty()) {
    for (const pipeline_change& change : together) suggest.add(change);
  }
  // If other programs used CPUs, a warning about them is shown instead of advice to add CPUs.
  if (run.others_share() <= 0 && is_limited_by_cpus(run, {})) {
    pipeline_change more;
    more.cpus = 2 * *run.recorded().cpus;
    found.possible.push_back(suggest.of(more));
  }
  if (!found.suggestions.empty()) {
    found.assumptions = assumptions_of(run, found.suggestions.front().change);
  }
  const std::optional<pipeline_change> named = setting_of(is, run.recorded());
  const auto is_suggested = [&](const std::vector<suggestion>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const suggestion& m) { return m.change == *named; });
  };
  if (!named || is_suggested(found.suggestions) || is_suggested(found.possible)) {
    return std::move(found);
  }
  suggestion m = suggest.of(*named);
  if (m.would_be.gain >= 1 + worthwhile) {
    std::vector<suggestion>& list = suggest.list_for(m);
    list.insert(list.begin(), std::move(m));
  }
  return std::move(found);
}

std::optional<suggestion> faster_step(const what_if& run) {
  pipeline_change change;
  change.step = 0.5;
  suggestion found = suggester(run, std::nullopt).of(change);
  if (found.would_be.gain < 1 + worthwhile) return std::nullopt;
  found.what = "the consumer's step 2x faster";
  return found;
}

double gain_without(const what_if& run, const std::string& name) {
  pipeline_change change;
  change.faster[name] = HUGE_VAL;
  return run.guess(change).gain;
}

std::vector<path_gain> path_gains_of(const what_if& run, const critical_path& path) {
  std::vector<path_gain> all;
  for (const path_share& share : path.shares) {
    if (!is_work(share) ||
        static_cast<double>(share.ns) < 0.01 * static_cast<double>(path.run_ns)) {
      continue;
    }
    all.emplace_back().path = share;
  }
  for_each_in_parallel(all.size(), all.size(), [&](std::size_t i) {
    pipeline_change change;
    change.faster[all[i].path.name] = a_bit_faster;
    all[i].gain = run.guess(change).gain;
    all[i].gain_free = gain_without(run, all[i].path.name);
  });
  double best = 1;
  for (const path_gain& one : all) best = std::max(best, one.gain);
  if (best < 1.01) return {};
  std::stable_sort(all.begin(), all.end(),
                   [](const path_gain& a, const path_gain& b) { return a.gain > b.gain; });
  return all;
}

}  // namespace lotus::tool
