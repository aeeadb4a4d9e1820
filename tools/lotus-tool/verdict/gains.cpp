#include "verdict/gains.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/change_text.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"
#include "verdict/diagnosis_text.hpp"
#include "verdict/verdict.hpp"

namespace lotus::tool {
namespace {

constexpr double a_bit_faster = 1.25;
constexpr std::size_t most_workers = 16;
constexpr std::size_t much_prefetch = 16;

bool has_prefetch(const recorded_pipeline& p) {
  return !p.makes_itself && p.stages.size() == 1 && p.in_flight_held;
}

/// Settings that somebody could choose, the cheapest first.
std::vector<pipeline_change> settings_of(const what_if& run, bool unordered) {
  const recorded_pipeline& p = run.recorded();
  std::vector<pipeline_change> all;
  if (p.stages.size() > 1 && !p.makes_itself && !p.stages.front().pool) {
    for (const recorded_stage& s : p.stages) {
      if (s.pool) continue;
      for (const std::size_t more : {s.threads + 1, 2 * s.threads, 4 * s.threads}) {
        all.emplace_back().threads[s.name] = more;
        all.back().unordered = unordered;
      }
    }
    return all;
  }
  // Where nobody knows how many CPUs there were, no more than twice the workers is any advice.
  const std::size_t now = p.makes_itself ? 1 : p.workers();
  const std::size_t most = run.cpus_known() ? std::max(most_workers, now) : 2 * now;
  for (std::size_t workers = 1; workers <= most; ++workers) {
    for (const std::size_t prefetch : {0U, 1U, 2U, 4U}) {  // 0: as it is
      // Less of it is no advice: it gains nothing but memory.
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

std::string move_text(const what_if& run, const pipeline_change& change, const prediction& p) {
  return change_text(change, run.recorded()) + ": " + three_digits(run.achieved()) + " -> " +
         rate(p.per_s) + " (" + three_digits(p.low) + " to " + three_digits(p.high) + ")";
}

struct found_setting {
  pipeline_change change;
  double gain = 1;
};

/// The cheapest that comes within 1 % of the best.
found_setting best_setting(const what_if& run, bool unordered) {
  std::vector<found_setting> tried;
  double best = 1;
  for (const pipeline_change& change : settings_of(run, unordered)) {
    tried.push_back({change, run.guess(change).gain});
    best = std::max(best, tried.back().gain);
  }
  for (const found_setting& one : tried) {
    if (one.gain >= 0.99 * best) return one;
  }
  return {};
}

std::optional<move> setting_move(const what_if& run) {
  found_setting chosen = best_setting(run, false);
  const recorded_pipeline& p = run.recorded();
  if (p.ordered && !p.makes_itself) {
    // In another order a training is another one: only for what it is worth.
    const found_setting unordered = best_setting(run, true);
    if (unordered.gain > 1.03 * chosen.gain) chosen = unordered;
  }
  if (chosen.gain < 1 + worthwhile) return std::nullopt;
  move found{{}, chosen.change, run.predict(chosen.change)};
  if (found.would_be.per_s < (1 + worthwhile) * run.achieved()) return std::nullopt;
  found.text = move_text(run, found.change, found.would_be);
  pipeline_change with_faster_step = found.change;
  with_faster_step.step = 1 / a_bit_faster;
  if (run.guess(with_faster_step).gain > 1.15 * found.would_be.gain) {
    found.text += "; beyond that the consumer is the limit";
  } else if (run.is_bracket(found.change)) {
    found.text += "; if there are CPUs for them";
  }
  return found;
}

}  // namespace

std::vector<bound_gain> gains_of(const what_if& run) {
  const recorded_pipeline& p = run.recorded();
  std::vector<bound_gain> all;
  const auto add = [&](verdict bound, const std::string& stage, const pipeline_change& change) {
    all.push_back({bound, stage, run.guess(change).gain});
  };
  pipeline_change change;
  if (p.ordered && !p.makes_itself) {
    change.unordered = true;
    add(verdict::order_bound, {}, change);
  }
  if (has_prefetch(p)) {
    change = {};
    change.prefetch = much_prefetch;
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
    change.making_faster = a_bit_faster;
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
  change = {};
  change.step = 1 / a_bit_faster;
  add(verdict::consumer_bound, {}, change);
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

std::string why_unlike(const what_if& run) {
  if (!run.is_unlike()) return {};
  return "a replay of the run makes " + rate(run.fitted()) + ", not " + rate(run.achieved()) +
         ": what holds it up is not in its logs";
}

std::vector<move> moves_of(const what_if& run, const run_data& data) {
  std::vector<move> moves;
  if (std::optional<move> setting = setting_move(run)) moves.push_back(std::move(*setting));
  std::vector<move> work;
  for (const std::string& name : names_of_work(run.recorded(), data.names)) {
    move one;
    one.change.faster[name] = 2;
    one.would_be = run.guess(one.change);
    // Of a short run the whole time may gain by its start alone; what is advised is told as a rate.
    const double gain = std::min(one.would_be.gain, one.would_be.per_s / run.achieved());
    if (gain >= 1 + worthwhile) work.push_back(std::move(one));
  }
  std::stable_sort(work.begin(), work.end(),
                   [](const move& a, const move& b) { return a.would_be.gain > b.would_be.gain; });
  for (move& one : work) {
    if (moves.size() == 3) break;
    // "preprocess" is no advice where its operations are known.
    if (one.change.faster.count("preprocess") != 0 && work.size() > 1) continue;
    one.would_be = run.predict(one.change);
    one.text = move_text(run, one.change, one.would_be);
    moves.push_back(std::move(one));
  }
  return moves;
}

double gain_without(const what_if& run, const std::string& name) {
  pipeline_change change;
  change.faster[name] = HUGE_VAL;
  return run.guess(change).gain;
}

std::vector<attack> attacks_of(const what_if& run, const critical_path& path) {
  std::vector<attack> all;
  double best = 1;
  for (const path_share& share : path.shares) {
    if (share.kind != path_kind::operation && share.kind != path_kind::stage) continue;
    if (static_cast<double>(share.ns) < 0.01 * static_cast<double>(path.run_ns)) continue;
    attack one;
    one.path = share;
    pipeline_change change;
    change.faster[share.name] = a_bit_faster;
    one.gain = run.guess(change).gain;
    one.gain_free = gain_without(run, share.name);
    best = std::max(best, one.gain);
    all.push_back(std::move(one));
  }
  if (best < 1.01) return {};
  std::stable_sort(all.begin(), all.end(),
                   [](const attack& a, const attack& b) { return a.gain > b.gain; });
  return all;
}

}  // namespace lotus::tool
