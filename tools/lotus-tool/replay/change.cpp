#include "replay/change.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "log/shown_name.hpp"
#include "replay/time_left.hpp"

namespace lotus::tool {
namespace {

class planner {
 public:
  planner(const recorded_pipeline& recorded, const name_table& names, const speed_law& law,
          const pipeline_change& change, const drawn_units& drawn, const assumed_servers& assumed)
      : r_(recorded), names_(names), law_(law), change_(change), drawn_(drawn), assumed_(assumed) {}

  replay_plan plan() {
    plan_.speed = law_;
    if (change_.cpus) plan_.speed.cpus = *change_.cpus;
    plan_.turnaround_ns = r_.turnaround_ns;
    plan_.round_robin = r_.round_robin;
    plan_.ordered = r_.ordered && !change_.unordered;
    plan_.epochs = r_.epochs;
    if (!drawn_.empty() && drawn_.size() < r_.units.size()) {
      plan_first_units();
    } else {
      plan_.units = r_.units;
    }
    plan_.pools = r_.pools;
    plan_work();
    if (!assumed_.is_free()) plan_served();
    plan_uses();
    if (change_.batch_size != 1) scale_batches();
    if (r_.makes_itself && !change_.own_thread) {
      build_in_consumer();
    } else {
      plan_threads();
      if (change_.no_start_up) leave_out_start_up();
      if (change_.ready_samples > 0) fill_with_ready_samples();
    }
    if (change_.loader_cpus) leave_a_cpu();
    return std::move(plan_);
  }

 private:
  std::uint32_t source(std::uint32_t unit) const { return drawn_.empty() ? unit : drawn_[unit]; }

  /// Plans only as many units as drawn_ has elements: the first units of the run.
  void plan_first_units() {
    const auto end = static_cast<std::uint32_t>(drawn_.size());
    plan_.share_of_run = static_cast<double>(end) / static_cast<double>(r_.units.size());
    plan_.units.assign(r_.units.begin(), r_.units.begin() + end);
    std::vector<planned_epoch>& epochs = plan_.epochs;
    while (!epochs.empty() && epochs.back().first_unit >= end) epochs.pop_back();
    if (epochs.empty()) return;
    planned_epoch& last = epochs.back();
    last.end_unit = std::min(last.end_unit, end);
    last.deliveries.erase(std::remove_if(last.deliveries.begin(), last.deliveries.end(),
                                         [end](std::uint32_t u) { return u >= end; }),
                          last.deliveries.end());
  }

  /// Returns whether the results of operations in pipeline_change::cached are cached when unit `u`
  /// is built: after the first epoch. A run of one epoch is taken for a later one.
  bool is_cached(std::uint32_t u) const {
    return !change_.cached.empty() && (r_.epochs.size() < 2 || u >= r_.epochs.front().end_unit);
  }

  /// Returns the recorded work with the changes of single operations.
  std::vector<measured_work> changed_works(bool cached) const {
    std::vector<measured_work> works = r_.works;
    std::vector<std::optional<time_left>> by_name;  // indexed by the number of the name
    for (const recorded_part& part : r_.parts) {
      if (part.name >= by_name.size()) by_name.resize(part.name + 1);
      std::optional<time_left>& left = by_name[part.name];
      if (!left) left = left_of(change_, shown_name(names_.name(part.name)), cached);
      if (left->is_same()) continue;
      measured_work& w = works[part.work];
      w.cpu_ns -= (1 - left->cpu) * part.cpu_ns;
      w.blocked_ns -= (1 - left->blocked) * part.blocked_ns - left->waits * part.cpu_ns;
    }
    return works;
  }

  void plan_work() {
    // changed_works() visits all operations of the run, so call it only if one of them changes.
    std::vector<measured_work> changed_now;
    std::vector<measured_work> changed_later;
    const bool any = changes_parts(change_);
    if (any) changed_now = changed_works(false);
    if (!change_.cached.empty()) changed_later = changed_works(true);
    // In a changed stage, all operations and the time outside of any operation change.
    std::vector<time_left> of_stage[2];
    for (const recorded_stage& s : r_.stages) {
      for (const bool cached : {false, true}) {
        of_stage[cached ? 1 : 0].push_back(left_of(change_, s.name, cached));
      }
    }
    plan_.works.reserve(r_.works.size());
    for (std::uint32_t u = 0; u < plan_.units.size(); ++u) {
      const planned_unit& to = r_.units[u];
      const planned_unit& from = r_.units[source(u)];
      const bool cached = is_cached(u);
      const std::vector<measured_work>& works = !any     ? r_.works
                                                : cached ? changed_later
                                                         : changed_now;
      for (std::uint32_t s = to.first_stage; s < to.end_stage; ++s) {
        const std::uint32_t index = from.first_work + (s - from.first_stage);
        const time_left& left = of_stage[cached ? 1 : 0][s];
        const measured_work w = left.is_same() ? works[index] : with_left(r_.works[index], left);
        // The works of the units follow each other in the order of the units.
        plan_.works.push_back({std::max(0.0, w.blocked_ns) / change_.preprocessing_faster,
                               std::max(0.0, w.cpu_ns) / law_.longer(1 + w.others_busy) /
                                   change_.preprocessing_faster});
        plan_.works.back().rounds = w.rounds;
      }
    }
  }

  /// Plans the operation that a lock or device limits. A lock or device is modeled as servers: each
  /// call needs a free server. The time during which the calls were served becomes the served phase
  /// of each work. The time during which they waited for a server is removed, because the
  /// simulation computes it again.
  void plan_served() {
    plan_.servers = assumed_.servers;
    for (const served_operation& one : assumed_.served) plan_served(one);
  }

  /// Returns the factor by which the calls of an operation or stage become shorter.
  double faster_by(const std::string& name, bool cached) const {
    const time_left left = left_of(change_, name, cached);
    return 1 / std::max(left.blocked, left.cpu + left.waits);
  }

  void plan_served(const served_operation& one) {
    const shared_operation* const op = assumed_.operation;
    const auto faster_in = [&](bool cached) {
      const double in_stage = op != nullptr && !op->is_stage ? faster_by(op->stage, cached) : 1;
      return faster_by(one.name, cached) * in_stage * change_.preprocessing_faster;
    };
    const double faster_of[] = {faster_in(false), faster_in(true)};
    if (assumed_.apart_ns > 0) plan_.let_through_ns = assumed_.apart_ns / faster_of[0];
    for (std::uint32_t u = 0; u < plan_.units.size(); ++u) {
      const planned_unit& to = r_.units[u];
      const planned_unit& from = r_.units[source(u)];
      const bool cached = is_cached(u);
      for (std::uint32_t s = to.first_stage; s < to.end_stage; ++s) {
        const std::uint32_t work_index = from.first_work + (s - from.first_stage);
        const double of_stage = op == nullptr ? faster_by(r_.stages[s].name, cached) : 1;
        move_served((*one.works)[work_index], r_.works[work_index],
                    faster_of[cached ? 1 : 0] * of_stage,
                    plan_.works[to.first_work + (s - to.first_stage)]);
      }
    }
  }

  /// Moves the time of one limited operation within one thread's work on a batch or item to the
  /// served phase.
  /// @param served  the recorded time of this operation within this work.
  /// @param faster  the factor by which the operation becomes faster.
  /// @param to      the planned work, which is changed.
  void move_served(const served_work& served, const measured_work& recorded, double faster,
                   work& to) {
    const double longer = law_.longer(1 + recorded.others_busy);
    // If the limited operation is a stage, use the factor of the whole stage, which includes the
    // effect of faster operations inside the stage.
    if (assumed_.operation != nullptr && assumed_.operation->is_stage) {
      const double before_ns = recorded.blocked_ns + recorded.cpu_ns / longer;
      faster = before_ns > 0 ? before_ns / std::max(1.0, to.blocked_ns + to.cpu_ns) : 1;
    }
    const double cpu_ns = std::min(to.cpu_ns, served.cpu_ns / longer / faster);
    to.cpu_ns -= cpu_ns;
    to.served_cpu_ns += cpu_ns;
    const double kept_ns = served.queued_ns - served.queued_ns / faster;
    const double left_ns = std::max(0.0, to.blocked_ns - served.waited_ns / faster + kept_ns);
    const double blocked_ns = std::min(left_ns, served.blocked_ns / faster + kept_ns);
    to.blocked_ns = left_ns - blocked_ns;
    to.served_blocked_ns += blocked_ns;
    // A call that takes no time is not made, so it does not count for a rate limit.
    if (std::isfinite(faster)) to.let_through += served.let_through;
  }

  static double all_of(const work& w) {
    return w.blocked_ns + w.cpu_ns + w.served_blocked_ns + w.served_cpu_ns;
  }

  void plan_uses() {
    plan_.uses.reserve(plan_.units.size());
    for (std::uint32_t u = 0; u < plan_.units.size(); ++u) {
      const std::uint32_t from = source(u);
      const measured_work& step = r_.steps[from];
      plan_.uses.push_back({r_.takes_ns[from],
                            {step.blocked_ns * change_.step,
                             step.cpu_ns / law_.longer(1 + step.others_busy) * change_.step}});
    }
  }

  /// Plans batches of another size, so that each epoch still contains the same amount of data. The
  /// work on a new batch is copied from the recorded batch at the same relative position in the
  /// epoch and scaled by the change in size. Supports only pipelines without items.
  void scale_batches() {
    const double factor = change_.batch_size;
    std::vector<planned_unit> units;
    std::vector<work> works;
    std::vector<planned_use> uses;
    for (planned_epoch& e : plan_.epochs) {
      const auto first = static_cast<std::uint32_t>(units.size());
      const auto count =
          std::max<long>(1, std::lround(static_cast<double>(e.end_unit - e.first_unit) / factor));
      for (long i = 0; i < count; ++i) {
        const std::uint32_t from =
            std::min(e.end_unit - 1,
                     e.first_unit + static_cast<std::uint32_t>(static_cast<double>(i) * factor));
        planned_unit unit = plan_.units[from];
        const std::uint32_t from_work = unit.first_work;
        unit.first_work = static_cast<std::uint32_t>(works.size());
        for (std::uint32_t s = 0; s < unit.end_stage - unit.first_stage; ++s) {
          work w = plan_.works[from_work + s];
          w.blocked_ns *= factor;
          w.cpu_ns *= factor;
          w.served_blocked_ns *= factor;
          w.served_cpu_ns *= factor;
          w.rounds = std::max(1U, static_cast<std::uint32_t>(std::lround(w.rounds * factor)));
          works.push_back(w);
        }
        planned_use use = plan_.uses[from];
        use.step.blocked_ns *= factor;
        use.step.cpu_ns *= factor;
        units.push_back(unit);
        uses.push_back(use);
      }
      e.first_unit = e.first_batch = first;
      e.end_unit = static_cast<std::uint32_t>(units.size());
      e.deliveries.clear();
      for (std::uint32_t u = first; u < e.end_unit; ++u) e.deliveries.push_back(u);
    }
    plan_.units = std::move(units);
    plan_.works = std::move(works);
    plan_.uses = std::move(uses);
  }

  /// Lets batches be filled with samples that are ready. If threads build whole batches, divides
  /// each batch into samples that take equally long.
  void fill_with_ready_samples() {
    plan_.ready_samples = true;
    plan_.round_robin = false;
    const auto samples = static_cast<std::uint32_t>(change_.ready_samples);
    if (plan_.stages.size() != 1 || plan_.stages.front().threads == 0 ||
        r_.stages.front().of_items) {
      return;
    }
    std::vector<planned_unit> units;
    std::vector<work> works;
    std::vector<planned_use> uses;
    for (planned_epoch& e : plan_.epochs) {
      const auto first = static_cast<std::uint32_t>(units.size());
      const std::uint32_t batches = e.end_unit - e.first_unit;
      for (std::uint32_t i = 0; i < batches * samples; ++i) {
        planned_unit sample = plan_.units[e.first_unit + i / samples];
        work part = plan_.works[sample.first_work];
        for (double* const ns :
             {&part.blocked_ns, &part.cpu_ns, &part.served_blocked_ns, &part.served_cpu_ns}) {
          *ns /= samples;
        }
        part.rounds = std::max(1U, part.rounds / samples);
        if (i % samples != 0) part.let_through = 0;  // each call counts once for a rate limit
        sample.batch = first + batches * samples + i / samples;
        sample.first_work = static_cast<std::uint32_t>(works.size());
        units.push_back(sample);
        works.push_back(part);
      }
      uses.resize(units.size());
      for (std::uint32_t b = e.first_unit; b < e.end_unit; ++b) {
        units.push_back({1, 1, static_cast<std::uint32_t>(works.size()), {}, samples});
        uses.push_back(plan_.uses[b]);
      }
      const std::uint32_t first_batch = first + batches * samples;
      for (std::uint32_t& u : e.deliveries) u = first_batch + (u - e.first_unit);
      e.first_unit = first;
      e.first_batch = first_batch;
      e.end_unit = first_batch + batches;
    }
    plan_.units = std::move(units);
    plan_.works = std::move(works);
    plan_.uses = std::move(uses);
    plan_.turnaround_ns /= samples;
    if (plan_.in_flight < unbounded / samples) plan_.in_flight *= samples;
    if (plan_.unfinished < unbounded / samples) plan_.unfinished *= samples;
  }

  /// Runs the steps on a CPU that the loader's threads do not use, and these on the others.
  void leave_a_cpu() {
    speed_law& law = plan_.speed;
    const auto loader = static_cast<double>(*change_.loader_cpus);
    const double longer = law.longer(1 + loader);
    for (planned_use& use : plan_.uses) {
      use.step.blocked_ns += use.step.cpu_ns * longer;
      use.step.cpu_ns = 0;
    }
    if (law.cpus <= loader) return;
    law.slowing *= law.cpus > 1 ? std::max(0.0, loader - 1) / (law.cpus - 1) : 0;
    law.cpus = loader;
  }

  /// Adds the time to build each batch to the step before the batch. This models a consumer that
  /// builds its batches itself and therefore never builds during a step.
  void build_in_consumer() {
    for (planned_epoch& e : plan_.epochs) {
      for (std::size_t i = 0; i < e.deliveries.size(); ++i) {
        const planned_unit& unit = plan_.units[e.deliveries[i]];
        work preprocessing;
        for (std::uint32_t s = unit.first_stage; s < unit.end_stage; ++s) {
          const work& w = plan_.works[unit.first_work + (s - unit.first_stage)];
          preprocessing.blocked_ns += w.blocked_ns + w.served_blocked_ns;
          preprocessing.cpu_ns += w.cpu_ns + w.served_cpu_ns;
        }
        if (i == 0) {
          e.consumer_ready_ns += preprocessing.blocked_ns + preprocessing.cpu_ns;
        } else {
          work& step = plan_.uses[e.deliveries[i - 1]].step;
          step.blocked_ns += preprocessing.blocked_ns;
          step.cpu_ns += preprocessing.cpu_ns;
        }
      }
    }
    plan_.stages.clear();
    plan_.pools.clear();
  }

  void plan_threads() {
    std::size_t more_in_flight = 0;
    std::size_t less_in_flight = 0;
    const std::optional<std::size_t> pool = change_.workers ? r_.stages.front().pool : std::nullopt;
    if (pool) plan_.pools[*pool] = *change_.workers;
    for (std::size_t s = 0; s < r_.stages.size(); ++s) {
      const recorded_stage& recorded = r_.stages[s];
      planned_stage stage;
      stage.threads = threads_with(change_, r_, s);
      stage.pool = recorded.pool;
      if (stage.pool && stage.pool != pool && stage.threads > recorded.threads) {
        plan_.pools[*stage.pool] += stage.threads - recorded.threads;
      }
      const std::size_t more =
          stage.threads > recorded.threads ? stage.threads - recorded.threads : 0;
      const std::size_t less =
          stage.threads < recorded.threads ? recorded.threads - stage.threads : 0;
      more_in_flight += more;
      less_in_flight += less;
      // A pipeline with a single stage needs no limit for the queue after this stage, because
      // replay_plan::in_flight already limits how many batches the threads may begin.
      if (r_.stages.size() > 1) {
        stage.max_ahead = std::max<std::size_t>(stage.threads, recorded.max_ahead + more - less);
        // If a limit on the batches in flight kept the queues short, the run does not show how many
        // batches or items the queues can hold.
        if (r_.budget_held && change_.in_flight) stage.max_ahead = unbounded;
      }
      plan_.stages.push_back(stage);
    }
    plan_.in_flight = in_flight(more_in_flight, less_in_flight);
    plan_.unfinished = r_.unfinished;
    const std::size_t threads = plan_.stages.front().threads;
    for (planned_epoch& e : plan_.epochs) spread_ready(e.threads_ready_ns, threads);
  }

  std::size_t in_flight(std::size_t more, std::size_t less) const {
    const std::size_t before = r_.stages.front().threads;
    const std::size_t now = plan_.stages.front().threads;
    const auto per_batch = static_cast<std::size_t>(std::ceil(r_.items_per_batch));
    if (change_.in_flight) return std::max<std::size_t>(1, *change_.in_flight * per_batch);
    if (change_.prefetch) return std::max<std::size_t>(1, *change_.prefetch * now * per_batch);
    if (r_.budget_held) return r_.in_flight;
    // The run had one batch in flight because the consumer asked for one at a time. If threads
    // build ahead, this is no limit any more: each of them builds a batch.
    if (r_.on_demand) return now * per_batch;
    // If the run never reached a limit on the batches in flight, the limit for more workers is
    // unknown. Assume two batches per worker, which is a usual default.
    const std::size_t seen = r_.in_flight_held || now <= before
                                 ? r_.in_flight
                                 : std::max(r_.in_flight, 2 * before * per_batch);
    const bool per_worker = r_.stages.size() == 1 && seen % before == 0 && seen >= 2 * before;
    if (per_worker) return seen / before * now;
    // Allow at least one batch in flight for each thread. If the recorded run had a lower limit,
    // which left threads idle, keep this limit instead.
    const std::size_t least = r_.in_flight_held && seen < before ? 1 : now;
    return std::max(least, seen + more > less ? seen + more - less : 1);
  }

  static void spread_ready(std::vector<double>& ready_ns, std::size_t threads) {
    if (ready_ns.empty()) ready_ns.push_back(0);
    const double later_ns = ready_ns.size() < 2 ? 0
                                                : (ready_ns.back() - ready_ns.front()) /
                                                      static_cast<double>(ready_ns.size() - 1);
    while (ready_ns.size() < threads) {
      ready_ns.push_back(ready_ns.back() + std::max(0.0, later_ns));
    }
    ready_ns.resize(threads);
  }

  void leave_out_start_up() {
    for (planned_epoch& e : plan_.epochs) {
      std::fill(e.threads_ready_ns.begin(), e.threads_ready_ns.end(), 0);
      e.consumer_ready_ns = 0;
    }
    for (std::uint32_t s = 0; s < plan_.stages.size(); ++s) {
      std::vector<double> totals;
      for (const planned_unit& unit : plan_.units) {
        if (s < unit.first_stage || s >= unit.end_stage) continue;
        const work& w = plan_.works[unit.first_work + (s - unit.first_stage)];
        totals.push_back(all_of(w));
      }
      if (totals.empty()) continue;
      const auto middle = totals.begin() + static_cast<std::ptrdiff_t>(totals.size() / 2);
      std::nth_element(totals.begin(), middle, totals.end());
      for (const planned_epoch& e : plan_.epochs) hasten_first(e, s, *middle);
    }
  }

  void hasten_first(const planned_epoch& e, std::uint32_t stage, double median_ns) {
    std::size_t left = plan_.stages[stage].threads;
    for (std::uint32_t u = e.first_unit; u < e.end_unit && left > 0; ++u) {
      const planned_unit& unit = plan_.units[u];
      if (stage < unit.first_stage || stage >= unit.end_stage) continue;
      --left;
      work& w = plan_.works[unit.first_work + (stage - unit.first_stage)];
      const double all_ns = all_of(w);
      if (all_ns <= median_ns) continue;
      w.blocked_ns *= median_ns / all_ns;
      w.cpu_ns *= median_ns / all_ns;
      w.served_blocked_ns *= median_ns / all_ns;
      w.served_cpu_ns *= median_ns / all_ns;
    }
  }

  const recorded_pipeline& r_;
  const name_table& names_;
  const speed_law& law_;
  const pipeline_change& change_;
  const drawn_units& drawn_;
  const assumed_servers& assumed_;
  replay_plan plan_;
};

}  // namespace

std::size_t threads_with(const pipeline_change& change, const recorded_pipeline& pipeline,
                         std::size_t stage) {
  const recorded_stage& s = pipeline.stages[stage];
  const auto named = change.threads.find(s.name);
  if (named != change.threads.end()) return named->second;
  if (!change.workers) {
    // The threads of a pipeline that builds on demand take turns, so one builds ahead as well.
    return change.own_thread && pipeline.on_demand ? 1 : s.threads;
  }
  if (stage == 0 && !s.pool) return *change.workers;
  if (!s.pool || s.pool != pipeline.stages.front().pool) return s.threads;
  return s.threads == pipeline.workers() ? *change.workers : std::min(s.threads, *change.workers);
}

bool pipeline_change::operator==(const pipeline_change& other) const {
  const auto all = [](const pipeline_change& c) {
    return std::tie(c.workers, c.threads, c.prefetch, c.in_flight, c.unordered, c.faster,
                    c.preprocessing_faster, c.step, c.cpus, c.no_start_up, c.own_thread,
                    c.batch_size, c.ready_samples, c.cache, c.cached, c.cached_reads, c.disk_waits,
                    c.order, c.offload, c.offload_waits, c.loader_cpus);
  };
  return all(*this) == all(other);
}

pipeline_change least_effect(pipeline_change change) {
  change.offload_waits = !change.offload.empty();
  change.cached_reads = false;
  change.disk_waits.clear();
  return change;
}

pipeline_change most_effect(pipeline_change change) {
  constexpr double mostly = 0.5;
  for (const auto& [name, share] : change.disk_waits) {
    if (share > mostly) change.offload.insert(name);
  }
  return change;
}

replay_plan plan_of(const recorded_pipeline& pipeline, const name_table& names,
                    const speed_law& law, const pipeline_change& change, const drawn_units& drawn,
                    const assumed_servers& assumed) {
  return planner(pipeline, names, law, change, drawn, assumed).plan();
}

}  // namespace lotus::tool
