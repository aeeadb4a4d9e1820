#include "findings/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "accelerator/ranks.hpp"
#include "base/parallel.hpp"
#include "base/statistics/distribution.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/claims.hpp"
#include "findings/decision.hpp"
#include "findings/facts/equal_stages.hpp"
#include "findings/facts/facts.hpp"
#include "findings/run_limits.hpp"
#include "log/folder/log_files.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/items.hpp"
#include "model/quantities.hpp"
#include "model/run_model.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

double sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Returns the 95 % confidence interval (Student's t) of the rate at which `slots` threads together
/// finish batches, if the durations for one batch have the distribution `time`.
std::optional<rate_interval> interval_of(const distribution& time, double slots) {
  // 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
  constexpr double quantiles[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                                  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101};
  if (time.count < 2 || time.count - 2 >= std::size(quantiles)) return std::nullopt;
  const auto freedom = static_cast<double>(time.count - 1);
  const double half_ns = quantiles[time.count - 2] * time.std_ns / std::sqrt(freedom);
  const double shortest_ns = time.mean_ns - half_ns;
  return rate_interval{slots * 1e9 / (time.mean_ns + half_ns),
                       shortest_ns > 0 ? slots * 1e9 / shortest_ns : HUGE_VAL};
}

/// The capacity of preprocessing, and the stage that limits it.
struct preprocessing_limit {
  std::optional<double> capacity;  ///< capacity of the slowest stage in batches per second
  std::string slowest;             ///< name of the slowest stage, if it is a named stage
};

preprocessing_limit limit_of(const std::vector<stage_figures>& stages,
                             std::optional<double> workers_alone) {
  preprocessing_limit found;
  found.capacity = workers_alone;
  const stage_figures* slowest = nullptr;
  for (const stage_figures& s : stages) {
    if (s.stage == preprocess_stage || !s.batches_per_s) continue;
    // Stages that share threads also share their capacity. Of these stages, choose the one that
    // takes most of the threads' time.
    const bool shared = slowest != nullptr && s.pool && s.pool == slowest->pool &&
                        *s.batches_per_s <= *slowest->batches_per_s;
    const bool slower = !found.capacity || *s.batches_per_s < *found.capacity;
    if (shared ? s.self_ns <= slowest->self_ns : !slower) continue;
    found.capacity = s.batches_per_s;
    slowest = &s;
  }
  if (slowest != nullptr) found.slowest = slowest->name;
  return found;
}

/// Returns how many times as long as without waits for a CPU the steps are.
double longer_by_queueing(const recorded_pipeline& p) {
  double work_ns = 0;
  double queued_ns = 0;
  for (const measured_work& w : p.steps) {
    work_ns += w.cpu_ns + w.blocked_ns;
    queued_ns += w.queued_ns;
  }
  return work_ns > 0 ? 1 + queued_ns / work_ns : 1;
}

/// The results of several analyses that read all operations of a run.
struct looked_at_operations {
  recorded_work work;
  recording recorded;
  critical_path path;  ///< empty if no batches were received
  worker_time time;
};

/// @param counted  for each batch: whether statistics contain it.
looked_at_operations look_at_operations(const run_data& run, const std::vector<bool>& counted) {
  looked_at_operations found;
  // The functions run in parallel. The one that takes the longest begins first, so that no CPU
  // waits for it at the end.
  const std::vector<std::function<void()>> all{
      [&] { found.recorded = record_pipeline(run); },
      [&] {
        if (run.batches.steady_per_s()) found.path = find_critical_path(run);
      },
      [&] { found.work = look_at_work(run); },
      [&] { found.time = measure_worker_time(run, counted); }};
  for_each_in_parallel(all.size(), all.size(), [&](std::size_t i) { all[i](); });
  return found;
}

/// Returns in how many of the samples a thread waited for other threads or processes.
double samples_for_others(const blocked_list& list) {
  double others = 0;
  for (const blocked_on& by : list.by) {
    const bool other = by.reason == wait_reason::condition || by.reason == wait_reason::process;
    if (other) others += static_cast<double>(by.samples);
  }
  return others;
}

/// Removes from work outside of batches the time in which it waits for other threads, according to
/// wait samples. These may be those of the batches, and then it keeps up with any change.
void leave_out_waits(const run_blocked_on& waits, double run_ns,
                     std::vector<length_bound>& bounds) {
  for (length_bound& of : bounds) {
    for (auto& [name, share] : of.self_shares) {
      const blocked_list* const list = waits.of('S' + name);
      if (list == nullptr || list->samples == 0) continue;
      const double waited_ns = static_cast<double>(list->ns) * samples_for_others(*list) /
                               static_cast<double>(list->samples);
      const double waited = std::min(share, waited_ns / run_ns);
      share -= waited;
      of.share -= waited;
    }
  }
  const auto is_small = [](const length_bound& of) {
    return of.share < length_bound::worth_naming;
  };
  bounds.erase(std::remove_if(bounds.begin(), bounds.end(), is_small), bounds.end());
}

/// Removes the suggestions that the facts forbid.
void keep_possible(const claims& facts, diagnosis& d) {
  for (std::vector<suggestion>* const list : {&d.suggestions, &d.possible}) {
    const auto forbidden = [&](const suggestion& m) { return facts.forbids(m.change); };
    if (!list->empty() && list == &d.suggestions && forbidden(list->front())) d.assumptions.clear();
    list->erase(std::remove_if(list->begin(), list->end(), forbidden), list->end());
  }
}

/// Limits what suggestions save to an operation's share of the critical path, and its part of the
/// waits for a CPU, if other programs used the CPUs: then the simulation only guesses which of
/// these waits would end.
void keep_within_path(const what_if& asked, diagnosis& d) {
  if (asked.others_share() <= 0 || !d.cpu_ns || d.run_ns <= 0) return;
  constexpr double inexact = 0.05;
  const double used = *d.cpu_ns / d.run_ns;
  const double own = used / (used + d.others_cpus.value_or(0));
  for (std::vector<suggestion>* const list : {&d.suggestions, &d.possible}) {
    for (suggestion& m : *list) {
      if (m.change.faster.size() != 1) continue;
      const auto& [name, factor] = *m.change.faster.begin();
      const path_states part = states_of(d.path, name);
      const double queue = states_of(d.path).queue - part.queue;
      const double most = part.all * (1 - 1 / factor) + own * queue + inexact;
      prediction& p = m.would_be;
      const double limited = 1 / (1 - most) / p.gain;
      if (part.all <= 0 || most >= 1 || limited >= 1) continue;
      p.gain *= limited;
      p.per_s *= limited;
      p.run_ns /= limited;
      p.steady_per_s *= limited;
      p.low = std::min(p.low, p.per_s);
    }
    const auto gains_little = [](const suggestion& m) {
      return m.change.faster.size() == 1 && m.would_be.gain < 1 + worthwhile;
    };
    list->erase(std::remove_if(list->begin(), list->end(), gains_little), list->end());
  }
}

/// Says why fewer threads are faster, if wait samples show a lock for which they wait.
void explain_fewer_threads(const recorded_pipeline& p, std::vector<suggestion>& suggestions) {
  if (!p.lock) return;
  for (suggestion& m : suggestions) {
    bool fewer = m.change.workers && *m.change.workers < p.workers() && !m.change.own_thread;
    for (const recorded_stage& s : p.stages) {
      const auto changed = m.change.threads.find(s.name);
      fewer = fewer || (changed != m.change.threads.end() && changed->second < s.threads);
    }
    if (fewer) m.what += ", because they wait for each other at " + p.lock->name;
  }
}

/// Simulates changes of the run, and stores what they would gain.
void predict(const run_data& run, const what_if& asked, const claims& facts, diagnosis& d) {
  const recorded_pipeline& p = asked.recorded();
  if (p.cpu_known && d.consumer_capacity)
    d.consumer_capacity = *d.consumer_capacity * longer_by_queueing(p);
  const what_if::limited_operation limited = asked.limited();
  d.limit = limit_words(asked, run, d.blocked_on);
  if (!d.predicted) return;
  const std::optional<double> consumer_per_s = d.has("short") ? std::nullopt : d.consumer_capacity;
  suggested_changes found =
      suggest(asked, run, *d.is, consumer_per_s, changes_of_all(equal_stages(d)));
  d.suggestions = std::move(found.suggestions);
  d.possible = std::move(found.possible);
  d.assumptions = std::move(found.assumptions);
  explain_fewer_threads(p, d.suggestions);
  keep_possible(facts, d);
  keep_within_path(asked, d);
  if (d.is == verdict::consumer_bound) d.faster_step = faster_step(asked);
  if (d.faster_step && facts.forbids(d.faster_step->change)) d.faster_step.reset();
  const std::map<std::string, std::string> stages = stages_of_operations(p, run.names);
  const auto stage = stages.find(limited.name);
  d.limit_of_stage = p.unfinished != unbounded || limited.name == d.stage ||
                     (stage != stages.end() && stage->second == d.stage);
  d.path_gains = path_gains_of(asked, d.path);
  // Predict the effect of at most this many operations, because each prediction needs a simulation.
  constexpr std::size_t max_ops = 20;
  d.gains_without_ops.resize(std::min(max_ops, d.ops.size()));
  for_each_in_parallel(d.gains_without_ops.size(), max_ops, [&](std::size_t i) {
    const std::string name = shown_name(d.ops[i].name);
    const auto known = std::find_if(d.path_gains.begin(), d.path_gains.end(),
                                    [&name](const path_gain& of) { return of.path.name == name; });
    d.gains_without_ops[i] =
        known == d.path_gains.end() ? gain_without(asked, name) : known->gain_free;
  });
  d.limited_by_cpus = is_limited_by_cpus(asked, {});
  if (p.stages.size() == 1 && !p.makes_itself) {
    pipeline_change more;
    more.workers = 2 * p.workers();
    d.more_workers_gain = asked.guess(more).gain;
  }
}

/// Returns the part whose times grow all through the run; "" if there is none.
std::string growing_part(const std::vector<time_change>& changes) {
  const auto at = std::find_if(changes.begin(), changes.end(), [](const time_change& c) {
    return c.is == time_change::shape::trend && c.after_ns >= 2 * c.before_ns;
  });
  return at == changes.end() ? std::string() : at->of;
}

/// Finds out what limits the run, from facts and from simulations. Without a verdict, stores the
/// reason in d.why_silent. Returns the simulation; nullptr if there is none.
std::shared_ptr<const what_if> judge(const run_data& run, recording recorded, critical_path path,
                                     predictions wanted, diagnosis& d) {
  if (!recorded.pipeline) {
    if (d.why_silent.empty()) d.why_silent = {"%", {name_word{recorded.why_not}}};
    return nullptr;
  }
  d.path = std::move(path);
  d.makes_itself = recorded.pipeline->makes_itself;
  d.on_demand = recorded.pipeline->on_demand;
  d.thread_for_each = recorded.pipeline->thread_for_each = find_batch_threads(run).threads > 0;
  d.needs_cpus = !hardly_needs_cpus(*recorded.pipeline);
  auto simulated =
      std::make_shared<const what_if>(run, std::move(*recorded.pipeline), nullptr, std::nullopt);
  const what_if& asked = *simulated;
  d.unrecorded_cpu = unrecorded_cpu_share(asked.recorded());
  for (const stage_figures& stage : d.stages) {
    // The simulation knows one span of a stage for each batch, which may have been built in many.
    if (!stage.cpu || !d.cpu_ns || *d.cpu_ns <= 0) continue;
    const double share = static_cast<double>(stage.cpu->cpu_ns) / *d.cpu_ns;
    d.unrecorded_cpu = std::min(d.unrecorded_cpu, std::max(0.0, 1 - share));
  }
  d.others_cpus = asked.recorded().others_cpus;
  if (!d.why_silent.empty()) return simulated;
  const run_facts f = facts_of(run, d, d.path);
  d.findings = find_all(f);
  d.growing = growing_part(f.changes);
  const claims facts(d);
  decide(asked, facts, f, d);
  if (!d.is || wanted == predictions::none) return simulated;
  predict(run, asked, facts, d);
  // What else ran does not matter to a path that hardly waits for a CPU, unless it is simulated.
  const bool matters = d.predicted || states_of(d.path).queue >= 0.05;
  if (d.is != verdict::hand_over_bound && matters && others_used_cpus(asked) &&
      !facts.forbids_idle_machine()) {
    const bool is_shown = !d.suggestions.empty() || !d.possible.empty() || d.faster_step;
    d.warnings.push_back(others_words(asked, d.predicted && is_shown));
  }
  return simulated;
}

/// An operation or stage that waits for other threads or processes.
struct waits_for_others {
  std::string name;  ///< "": there is none
  double share = 0;  ///< share (0..1) of its time in which it does so
};

/// Looks at the operation or stage with the largest share of the critical path. Returns it if it
/// often waits for others.
waits_for_others largest_that_waits(const diagnosis& d) {
  constexpr double fewest_samples = 10;
  const auto most = std::find_if(d.path.shares.begin(), d.path.shares.end(), is_work);
  if (most == d.path.shares.end() || !most->cpu || most->ns <= 0) return {};
  const blocked_list* const list = d.blocked_on.of('S' + most->name);
  if (list == nullptr || static_cast<double>(list->samples) < fewest_samples) return {};
  const double others = samples_for_others(*list);
  const auto blocked_ns = static_cast<double>(most->cpu->blocked_ns.value_or(0));
  const double share = blocked_ns / static_cast<double>(most->ns);
  // Few waits for others say nothing, however long the operation is blocked.
  if (2 * others <= static_cast<double>(list->samples) || share < 0.5) return {};
  return {most->name, share * others / static_cast<double>(list->samples)};
}

/// Moves suggestions from the certain to the uncertain ones: of more workers, if workers wait for
/// other threads that do part of their work, or for a slow worker; of a faster operation that does
/// little but wait for others. They gain only if the others do more, and the recording does not
/// show whether they can.
void doubt_what_waits(diagnosis& d) {
  const bool has_slow = first_with(doubts_threads, d.findings) != nullptr;
  const waits_for_others waits = largest_that_waits(d);
  const bool only_waits = waits.share >= 0.8;
  const auto adds_threads = [](const suggestion& m) {
    return m.change.workers || !m.change.threads.empty();
  };
  const auto is_sure = [&](const suggestion& m) {
    if (adds_threads(m)) return !has_slow && waits.name.empty();
    return !only_waits || m.change.faster.count(waits.name) == 0;
  };
  // The assumptions belong to the first suggestion. If it becomes an uncertain one below, remove
  // its assumptions.
  if (!d.suggestions.empty() && !is_sure(d.suggestions.front())) d.assumptions.clear();
  const auto doubtful = std::stable_partition(d.suggestions.begin(), d.suggestions.end(), is_sure);
  const auto doubt = [&](suggestion& m) {
    m.condition = {!adds_threads(m) ? "if what it waits for comes sooner"
                   : has_slow ? "if the slow worker does not get as many batches as the others"
                              : "if what the workers wait for can serve more at once"};
    m.only_if = true;
    m.would_be.low = std::min(m.would_be.low, d.achieved.value_or(m.would_be.low));
  };
  std::for_each(doubtful, d.suggestions.end(), doubt);
  for (suggestion& m : d.possible) {
    if (!is_sure(m)) doubt(m);
  }
  d.possible.insert(d.possible.begin(), std::make_move_iterator(doubtful),
                    std::make_move_iterator(d.suggestions.end()));
  d.suggestions.erase(doubtful, d.suggestions.end());
}

/// If preprocessing is the bottleneck and is limited by a lock, changes the verdict to lock_bound.
void find_lock(const run_data& run, std::size_t skip_batches, diagnosis& d) {
  if (d.is != verdict::preprocessing_bound && d.is != verdict::stage_bound) return;
  d.lock = find_limiting_lock(run, d.blocked_on, d.path, d.stage, d.workers, skip_batches);
  // Batches may be built in stages although none of these is the bottleneck of a simulation.
  const bool any_stage = d.stage.empty() && d.blocked_on.preprocessing.empty();
  for (std::size_t i = 0; any_stage && !d.lock && i < d.stages.size(); ++i) {
    d.lock =
        find_limiting_lock(run, d.blocked_on, d.path, d.stages[i].name, d.workers, skip_batches);
  }
  // If CPUs are missing, few waits for a lock limit nothing; most are for a thread without a CPU.
  if (d.lock && d.queued_longer_than_ran && d.lock->share < 0.25) d.lock.reset();
  if (!d.lock) return;
  d.is = verdict::lock_bound;
  // The verdict says it.
  d.findings.erase(std::remove_if(d.findings.begin(), d.findings.end(),
                                  [](const finding& one) { return one.has(names_lock); }),
                   d.findings.end());
  // The simulation does not always know of the lock and may suggest more threads, or to make faster
  // what only waits for it.
  keep_possible(claims(d), d);
  if (!d.lock->of.held_by.empty()) return;
  const auto only_waits = [&](const suggestion& m) {
    return m.change.faster.count(d.lock->operation) != 0;
  };
  for (auto* const all : {&d.suggestions, &d.possible}) {
    all->erase(std::remove_if(all->begin(), all->end(), only_waits), all->end());
  }
}

}  // namespace

bool diagnosis::has(std::string_view check_id) const noexcept {
  return std::any_of(checks.begin(), checks.end(),
                     [&](const check& c) { return c.id == check_id; });
}

judgement diagnose_run(const run_data& run, std::size_t skip_batches, diagnostic_log& diagnostics,
                       predictions wanted) {
  const std::string& dir = run.files->dir;
  if (run.empty() && run.aggregated.empty()) {
    return {std::nullopt, {"%: the logs contain nothing usable", {name_word{dir}}}, nullptr};
  }
  const run_batches& batches = run.batches;
  if (batches.consumers() > 1) {
    diagnostics.note(
        dir + ": " + std::to_string(batches.consumers()) +
        " processes consumed at the same time; this diagnosis is for all of them together. Record "
        "each into its own folder to diagnose it alone");
  }
  std::vector<std::int64_t> preprocessed = values_of(batches, quantity::preprocess, skip_batches);
  const std::vector<std::int64_t> waits = values_of(batches, quantity::wait, skip_batches);
  std::vector<std::int64_t> steps = values_of(batches, quantity::step, skip_batches);
  const std::vector<bool> counted = counted_batches(batches, skip_batches);
  diagnosis d;
  d.dir = dir;
  d.loader = run.files->loader;
  d.records = run.records;
  looked_at_operations operations = look_at_operations(run, counted);
  d.checks = failed_checks(run, operations.work);
  d.why_silent = why_silent(run, d.checks);
  if (d.why_silent.empty() && waits.empty() && !batches.pushed()) {
    d.why_silent = {"all batches were skipped; skip fewer, or record more"};
  }
  d.batches = static_cast<std::size_t>(std::count(counted.begin(), counted.end(), true));
  for (const epoch_times& epoch : batches.epochs()) d.received += epoch.delivered;
  if (d.received == 0) d.received = d.batches;
  d.pushed = batches.pushed();
  // At the end of a part, batches that are received later are in flight.
  d.discarded = run.files->is_part() ? 0 : batches.discarded();
  d.workers = workers_at_once(batches);
  if (!batches.in_parts() && !are_built_by_short_threads(run)) {
    d.living_workers = living_workers(batches);
  }
  if (run.cpus && run.cpus->count() > 0) d.cpus = run.cpus->count();
  d.step_ns = sum_of(steps);
  d.achieved = batches.achieved_per_s();
  d.run_ns = static_cast<double>(batches.length_ns());
  d.cpu_ns = run.cpu_time.between(batches.start_ns(), batches.start_ns() + batches.length_ns());
  d.steady = batches.steady_per_s();
  const distribution step = describe(steps);
  d.mean_step_ns = step.mean_ns;
  const distribution preprocess = describe(preprocessed);
  const auto workers = static_cast<double>(d.workers);
  std::optional<double> workers_alone;
  if (preprocess.count > 0) {
    d.mean_preprocess_ns = preprocess.mean_ns;
    d.std_preprocess_ns = preprocess.std_ns;
    const std::optional<cpu_split> cpu = cpu_of(run, quantity::preprocess, skip_batches);
    // Threads that are mostly blocked are not limited by the CPUs, even if they wait for them.
    d.queued_longer_than_ran =
        cpu && cpu->run_queue_ns.value_or(0) > cpu->cpu_ns + cpu->blocked_ns.value_or(0);
    d.blocked_of_work = cpu ? blocked_share(*cpu) : 0;
    workers_alone = preprocess.mean_ns > 0 ? workers * 1e9 / preprocess.mean_ns : HUGE_VAL;
  }
  if (!run.side.stages.empty()) d.stages = measure_stages(run);
  const preprocessing_limit made_by = limit_of(d.stages, workers_alone);
  d.preprocessing_capacity = made_by.capacity;
  d.slowest_stage = made_by.slowest;
  distribution outside_of_waits = step;
  outside_of_waits.mean_ns += batches.mean_late_ns();
  if (d.step_ns > 0) d.consumer_capacity = 1e9 / outside_of_waits.mean_ns;
  // What was reached is possible, for example if a stage finds the end of the data in vain.
  for (std::optional<double>* const capacity : {&d.preprocessing_capacity, &d.consumer_capacity}) {
    if (*capacity && d.achieved) *capacity = std::max(**capacity, *d.achieved);
  }
  if (d.has("short")) {
    if (d.slowest_stage.empty()) d.preprocessing_interval = interval_of(preprocess, workers);
    d.consumer_interval = interval_of(outside_of_waits, 1);
  }
  d.waits = divide_waits(run, counted);
  d.wait_ns = d.waits.all_ns;
  d.wait_share = d.waits.share();
  if (d.wait_ns > 0) d.head_of_line_share = d.waits.behind_others_ns / d.wait_ns;
  const worker_time& time = operations.time;
  d.ops = time.ops;
  d.aggregated = figures_of(run.aggregated);
  d.slow_samples = time.slow_samples;
  d.samples_per_batch = time.samples_per_batch;
  d.slow_workers = slow_workers_of(run, counted);
  if (batches.all().empty()) {
    d.operations = sum_operations(run);
    d.recorded_ns = run.empty() ? 0 : run.last_ns - run.first_ns;
  }
  d.blocked_on = join_waits(run, diagnostics);
  name_locks(*run.files, d.blocked_on, diagnostics);
  name_stacks(*run.files, d.blocked_on, diagnostics);
  name_running_holders(run, d.blocked_on);
  if (operations.recorded.pipeline) {
    operations.recorded.pipeline->lock = find_sampled_lock(d.blocked_on);
    leave_out_waits(d.blocked_on, d.run_ns, operations.recorded.pipeline->bounds);
  }
  std::shared_ptr<const what_if> simulated =
      judge(run, std::move(operations.recorded), std::move(operations.path), wanted, d);
  find_lock(run, skip_batches, d);
  doubt_what_waits(d);
  return {std::move(d), {}, std::move(simulated)};
}

void look_at_accelerators(diagnosis& of, const run_data& run, diagnostic_log& diagnostics) {
  of.accelerators = find_accelerators(run, diagnostics);
  of.accelerators_busy = are_busy(of.accelerators, run);
}

}  // namespace lotus::tool
