// The verdicts that the largest group of facts gives if the simulation does not explain the run.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "findings/claims.hpp"
#include "findings/facts/equal_stages.hpp"
#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/run_limits.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/path/critical_path.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

bool waits_for(const run_facts& f, double part_ns) {
  return f.waits.share() >= waits_much && part_ns >= 0.5 * f.waits.all_ns;
}

/// Returns the factor by which a quantity is longer than without waits for a CPU, which other
/// programs may cause; 1 if these are unknown.
double run_longer(const run_facts& f, quantity of) {
  const std::optional<cpu_split> cpu = cpu_of(f.run, of, 0);
  if (!cpu || !cpu->run_queue_ns || !cpu->blocked_ns) return 1;
  const auto own_ns = static_cast<double>(cpu->cpu_ns + *cpu->blocked_ns);
  return own_ns > 0 ? 1 + static_cast<double>(*cpu->run_queue_ns) / own_ns : 1;
}

/// If the capacities of the workers and of the consumer are closer than this, nothing or both may
/// limit.
constexpr double clearly = 1.25;

/// Returns the capacity of the consumer, divided by that of the workers, both if they never had to
/// wait for a CPU, as far as there are CPUs for the workers; nullopt if one is unknown.
std::optional<double> consumer_by_workers(const run_facts& f) {
  if (!f.d.preprocessing_capacity || !f.d.consumer_capacity) return std::nullopt;
  double workers_per_s = *f.d.preprocessing_capacity * run_longer(f, quantity::preprocess);
  const std::optional<cpu_split> cpu = cpu_of(f.run, quantity::preprocess, 0);
  if (cpu && cpu->cpu_ns > 0 && f.cpus > 0) {
    const double batch_ns = static_cast<double>(cpu->cpu_ns) /
                            static_cast<double>(std::max<std::size_t>(1, f.d.received));
    workers_per_s = std::min(workers_per_s, f.cpus * 1e9 / batch_ns);
  }
  return *f.d.consumer_capacity * run_longer(f, quantity::step) / workers_per_s;
}

/// Whether each batch passes through its stages only while the consumer waits for it.
bool builds_on_demand(const run_facts& f) {
  const wait_parts& w = f.waits;
  const bool is_own_work = f.d.makes_itself && !f.d.on_demand;
  return !f.d.pushed && !is_own_work && !f.d.stages.empty() && w.patterns.idle_steps > 0 &&
         w.share() >= waits_much && w.built_ns + w.between_ns >= 0.5 * w.all_ns &&
         w.not_begun_ns < 0.25 * w.all_ns;
}

/// Returns during which share of the run the consumer waited while nobody built a batch, unless
/// this is little.
double idle_share(const run_facts& f) {
  // If all stages and the consumer are idle for half of the run, something else limits it.
  const bool all_idle = !f.d.stages.empty() && could_do_more(f, f.d.preprocessing_capacity, 2) &&
                        could_do_more(f, f.d.consumer_capacity, 2);
  const double worth_naming = all_idle ? 0.05 : 0.15;
  const wait_parts& w = f.waits;
  if (f.d.pushed || f.d.makes_itself || w.patterns.windows.every > 0 || w.share() < waits_much)
    return 0;
  const double share = w.idle_ns() / (w.all_ns + w.steps_ns);
  return share < worth_naming ? 0 : share;
}

/// Returns whether batches are begun late, although some are being built most of the time: neither
/// the threads with markers nor the consumer have so much to do.
bool begins_late(const run_facts& f) {
  constexpr double much_of_it = 0.25;
  return !f.d.pushed && !f.d.makes_itself && f.waits.patterns.windows.every == 0 &&
         f.waits.share() >= waits_much && f.waits.not_begun_ns > f.waits.between_ns &&
         could_do_more(f, f.d.preprocessing_capacity) && could_do_more(f, f.d.consumer_capacity) &&
         f.states(path_kind::prefetch).all >= much_of_it;
}

/// Whether threads that have their work wait for CPUs that others use, for at least this share of
/// the run.
bool is_crowded(const run_facts& f, double share) {
  const std::optional<finding> crowd = unmarked_threads(f);
  return crowd && crowd->has(gives_reason) && f.states().queue >= share;
}

/// Returns whether something before or between the stages, which has no marker, limits the run:
/// often nobody built a batch, and the stages could have built many more.
bool limits_unmarked(const run_facts& f) {
  const double idle_for = idle_share(f);
  const bool idle = idle_for > 0 && !f.d.stages.empty() && !is_crowded(f, idle_for);
  return (idle && could_do_more(f, f.d.preprocessing_capacity)) || begins_late(f);
}

/// Returns the function in which threads that build batches are blocked outside of all operations,
/// if that is what they mostly wait for, such as "asleep in read_ids"; "" if it is unknown. Locks
/// have a finding of their own.
std::string blocked_outside_operations(const run_blocked_on& joined) {
  constexpr double mostly = 0.5;
  const blocked_list& all = joined.preprocessing;
  if (all.empty() || all.by.front().reason == wait_reason::lock || all.by.front().share < mostly) {
    return {};
  }
  // The samples of operations are among these.
  for (const auto& [name, of] : joined.ops) {
    if (!of.empty() && of.by.front().calls == all.by.front().calls) return {};
  }
  const std::string calls = own_calls(all.by.front());
  const bool sleeps = all.by.front().reason == wait_reason::sleep;
  return calls.empty() ? calls : (sleeps ? "asleep in " : "waiting in ") + calls;
}

/// Returns what threads that build batches mostly do outside of all operations, such as "asleep in
/// read_ids" or "on a CPU in parse"; "" if samples do not show it.
std::string done_outside_operations(const run_facts& f) {
  const path_states outside = f.states(path_kind::unrecorded);
  std::string blocked = blocked_outside_operations(f.d.blocked_on);
  if (outside.blocked > outside.cpu && !blocked.empty()) return blocked;
  const std::string function = function_in_batches(f.run);
  return function.empty() ? blocked : "on a CPU in " + function;
}

/// Returns the advice for threads that wait at a condition for what others give back.
/// @param what  result of done_outside_operations().
phrase give_more(const run_blocked_on& joined, const std::string& what) {
  if (what.empty() || what != blocked_outside_operations(joined) ||
      joined.preprocessing.by.front().reason != wait_reason::condition) {
    return {};
  }
  return {
      "If others give back what they wait for (buffers of a pool, permits), let there be more. "};
}

/// Returns where the threads of stages mostly wait between two batches; empty if too few samples
/// show it.
phrase waits_between_batches(const run_facts& f) {
  constexpr std::uint64_t fewest = 10;
  constexpr double mostly = 0.5;
  phrase text;
  for (const auto& [stage, list] : f.d.blocked_on.between_batches) {
    if (stage == preprocess_stage || list.samples < fewest || list.by.front().share < mostly) {
      continue;
    }
    const std::string place = own_calls(list.by.front());
    if (place.empty()) continue;
    text.add(text.empty() ? ". Between their batches, the threads of % mostly wait in %"
                          : ", those of % in %",
             {name_word{shown_name(f.run.names.name(stage.value()))}, name_word{place}});
  }
  return text;
}

}  // namespace

phrase when_idle(const run_facts& f) {
  constexpr double worth_naming = 0.25;
  const char* const where =
      f.waits.is_between() ? f.d.stages.size() == 1 ? "between the parts of a batch is slow"
                                                    : "between two stages is slow"
      : f.d.stages.empty() ? "before LOTUS_BATCH_PREPROCESSED(i) is slow, such as a thread that "
                             "hands out batches"
                           : "before the first stage is slow";
  phrase text;
  if (idle_share(f) <= 0 && begins_late(f)) {
    text = {
        " batch was begun in time during % of the critical path, although the workers could "
        "build %: something %",
        {share_word{f.states(path_kind::prefetch).all}, rate_word{f.d.preprocessing_capacity},
         name_word{where}}};
  } else {
    text = {" batch was being built during % of the % that the consumer waited",
            {time_word{f.waits.idle_ns()}, time_word{f.waits.all_ns}}};
    if (f.asleep) {
      text.add(": between their batches, % slept for about % in all",
               {name_word{f.asleep->of}, time_word{f.asleep->asleep_ns}});
      if (!f.asleep->place.empty()) text.add(", in %", {name_word{f.asleep->place}});
      return text;
    }
    text.add(": something %", {name_word{where}});
  }
  if (f.waits.is_between()) text.add(waits_between_batches(f));
  const std::optional<operation_sum> between = largest_between_batches(f.run);
  if (between && between->self_ns >= 0.5 * f.waits.idle_ns()) {
    text.add(". Between batches, % takes % in all, % in each call",
             {name_word{between->name}, time_word{between->self_ns},
              time_word{between->self_ns / static_cast<double>(between->calls)}});
  }
  if (f.started.count > 0) text.add(", such as the start of %", {name_word{f.started.shown}});
  constexpr double most_idle = 0.1;  // such a small part of a CPU slows down nothing
  const bool is_known =
      f.unmarked_share >= worth_naming && f.unmarked_cpus >= most_idle && f.unmarked_in;
  if (is_known && !unmarked_threads(f)) {
    text.add(". Code outside of all markers used % of the program's CPU time, most of it in ",
             {share_word{f.unmarked_share}})
        .add(words_of(*f.unmarked_in));
  }
  return text;
}

std::optional<finding> waits_while_built(const run_facts& f) {
  const wait_parts& w = f.waits;
  // Workers that share CPUs build late, in another order, and hand over late.
  const bool queue = f.d.queued_longer_than_ran && f.cpus > 0;
  const double built_ns = w.built_ns + w.between_ns + w.not_begun_ns - w.nobody_ns +
                          (queue ? w.order_ns + w.hand_over_ns : 0);
  if (f.d.pushed || !waits_for(f, built_ns) || limits_unmarked(f)) return std::nullopt;
  const double share = built_ns / (w.all_ns + w.steps_ns);
  // Work is not named for waits that are much longer than its part of the path.
  constexpr double least = 0.25;
  const path_share* most = f.largest_work();
  if (most != nullptr && f.states_of(most->name).all < least * share) most = nullptr;
  const bool stages = most != nullptr && most->kind == path_kind::stage && !f.d.stages.empty();
  phrase because{"of the % that the consumer waited, % were for batches that were being built.",
                 {time_word{w.all_ns}, time_word{built_ns}}};
  if (queue) {
    because = without_cpu_words(f.d);
  } else if (most != nullptr) {
    because = {
        "% has % of the critical path, and the consumer mostly waited for batches that were being "
        "built.",
        {name_word{most->name}, share_word{f.states_of(most->name).all}}};
  }
  std::optional<verdict> limit = stages ? verdict::stage_bound : verdict::preprocessing_bound;
  if (stages && could_all_do_more(f)) limit = std::nullopt;
  return finding{"being-built", std::move(because), {}, share, limit};
}

std::optional<finding> built_on_demand(const run_facts& f) {
  const path_share* const most = f.largest_work();
  if (!builds_on_demand(f) || most == nullptr) return std::nullopt;
  return finding{
      "built-on-demand",
      {"each batch is built only when the consumer asks for it. No batch was being built during % "
       "of the time of the consumer's steps.",
       {share_word{f.waits.patterns.idle_steps}}},
      {"Ask for several batches ahead."},
      f.waits.share(),
      most->kind == path_kind::stage ? verdict::stage_bound : verdict::preprocessing_bound,
      gives_reason};
}

std::optional<finding> equally_slow_stages(const run_facts& f) {
  const std::vector<const stage_figures*> stages = equal_stages(f.d);
  const path_share* const most = f.largest_work();
  const bool is_path = most != nullptr && most->kind == path_kind::stage;
  if (stages.empty() || !is_path || f.waits.share() < waits_much) return std::nullopt;
  double least = *stages.front()->batches_per_s;
  for (const stage_figures* const s : stages) least = std::min(least, *s->batches_per_s);
  const auto name = [](const stage_figures* s) { return s->name; };
  return finding{
      "equally-slow-stages",
      {"% can each process about %, so it hardly helps if only one of them becomes faster.",
       {name_word{enumerated(stages, " and ", name)}, rate_word{least}}},
      {"Make all of them faster, or give all of them more threads."},
      f.waits.share(),
      verdict::stage_bound,
      gives_reason};
}

double share_without_builder(const run_facts& f) {
  const double share =
      std::max(idle_share(f), begins_late(f) ? f.states(path_kind::prefetch).all : 0.0);
  return share <= 0 || workers_start_again(f) || is_crowded(f, share) ? 0 : share;
}

std::optional<finding> nobody_builds(const run_facts& f) {
  const double share = share_without_builder(f);
  if (share <= 0) return std::nullopt;
  return finding{
      "nobody-builds",
      phrase{"no"}.add(when_idle(f)).add("."),
      {f.asleep
           ? "If they poll there, let them wait at a condition variable; otherwise mark what they "
             "do there."
       : f.waits.is_between() && !waits_between_batches(f).empty()
           ? "If one waits to pass batches on while the next waits to receive them, a notification "
             "is missing; otherwise, mark what passes them on with LOTUS_STAGE(name, i)."
       : f.waits.is_between()
           ? "Find out what passes batches on there, and mark it with "
             "LOTUS_STAGE(name, i)."
           : "Find out what the workers do or wait for before they begin a batch."},
      share,
      limits_unmarked(f) ? std::optional(verdict::preprocessing_bound) : std::nullopt,
      forbids_threads | (is_unlimited(f.idle) ? forbids_limit : 0U)};
}

std::optional<finding> waits_for_order(const run_facts& f) {
  // One that always works has no order that would help.
  const std::optional<finding> slow = slow_worker_found(f);
  if (slow && slow->has(forbids_order)) return std::nullopt;
  if (f.d.pushed || f.d.makes_itself || !waits_for(f, f.waits.order_ns)) return std::nullopt;
  phrase because{
      "of the % that the consumer waited, a later batch was ready during %, but not the next one.",
      {time_word{f.waits.all_ns}, time_word{f.waits.order_ns}}};
  phrase to_do;
  constexpr double often_idle = 0.75;
  const auto workers = static_cast<double>(f.idle.workers);
  const double building = f.d.mean_preprocess_ns * static_cast<double>(f.d.received) / f.run_ns;
  if (f.idle.workers > 1 && building < often_idle * workers) {
    because.add(" Only % of % build a batch on average.",
                {count_word{building}, count_word{workers, "worker", "workers"}});
    to_do = {"Deliver batches in any order, or let workers that are done go on with others."};
  }
  constexpr double mostly = 0.5;
  if (!f.d.stages.empty() && f.waits.order_stage && *f.waits.order_stage != preprocess_stage &&
      f.waits.order_between_ns >= mostly * f.waits.order_ns) {
    because.add(" During % of that time, the next one was between two stages, before %.",
                {share_word{f.waits.order_between_ns / f.waits.order_ns},
                 name_word{shown_name(f.run.names.name(f.waits.order_stage->value()))}});
    to_do = {
        "Mark what it waits for there with LOTUS_SCOPE; perhaps threads take later batches first."};
  }
  return finding{"order", std::move(because), std::move(to_do),
                 f.waits.order_ns / (f.waits.all_ns + f.waits.steps_ns), verdict::order_bound};
}

std::optional<finding> step_waits_for_cpu(const run_facts& f) {
  constexpr double worth_naming = 0.25;
  const path_states steps = f.states(path_kind::step);
  const bool often_queues = steps.queue >= worth_naming && 3 * steps.queue > steps.all;
  // The program's own marked work must be what uses the CPUs.
  const bool own = f.cpus > 0 && f.used_cpus >= 0.7 * f.cpus && f.unmarked_share < 0.25 &&
                   f.others_cpus.value_or(0) < 0.3 * f.used_cpus;
  if (f.d.pushed || !often_queues || !own || consumer_by_workers(f).value_or(0) < clearly) {
    return std::nullopt;
  }
  return finding{
      "step-waits-for-cpu",
      {"the consumer's step waits for a CPU during % of the run, because the threads "
       "that build batches use % of %.",
       {share_word{steps.queue}, count_word{f.used_cpus}, count_word{f.cpus, "CPU", "CPUs"}}},
      {"Build batches with less CPU time, or let the consumer's thread run first."},
      steps.queue,
      verdict::preprocessing_bound,
      gives_reason | forbids_threads | forbids_balanced};
}

std::optional<finding> work_outside_operations(const run_facts& f) {
  constexpr double worth_naming = 0.3;
  const path_share* const most = f.largest_work();
  const double outside = f.states(path_kind::unrecorded).all;
  if (f.d.pushed || f.d.on_demand || outside < worth_naming ||
      (most != nullptr && outside <= f.states_of(most->name).all)) {
    return std::nullopt;
  }
  const std::string what = done_outside_operations(f);
  if (most == nullptr) {
    if (what.empty()) return std::nullopt;
    return finding{"outside-operations",
                   {"the threads that build batches are mostly %.", {name_word{what}}},
                   give_more(f.d.blocked_on, what)
                       .add("Put LOTUS_SCOPE into the parts of their work to see what each of them "
                            "takes."),
                   outside};
  }
  phrase because{f.d.makes_itself
                     ? "building batches takes % of the critical path outside of all operations"
                     : "workers spend % of the critical path outside of all operations",
                 {share_word{outside}}};
  if (!what.empty()) because.add(", mostly %", {name_word{what}});
  return finding{"outside-operations",
                 std::move(because.add(".")),
                 give_more(f.d.blocked_on, what).add("Put LOTUS_SCOPE into what they do there."),
                 outside,
                 f.d.makes_itself ? std::nullopt : std::optional(verdict::preprocessing_bound),
                 f.d.makes_itself ? 0U : gives_reason};
}

std::optional<finding> work_between_batches(const run_facts& f) {
  constexpr double worth_naming = 0.2;
  if (f.d.pushed || f.d.makes_itself || f.idle.workers == 0 || f.waits.share() < waits_much) {
    return std::nullopt;
  }
  const std::optional<operation_sum> most = largest_between_batches(f.run);
  if (!most) return std::nullopt;
  const double share = most->self_ns / (f.run_ns * static_cast<double>(f.idle.workers));
  if (share < worth_naming) return std::nullopt;
  return finding{
      "work-between-batches",
      {"between two batches, the threads that build them spend % of their time in %, % per call.",
       {share_word{share}, name_word{most->name},
        time_word{most->self_ns / static_cast<double>(most->calls)}}},
      {"Make it faster or do it elsewhere. If it is a part of the work on a batch, let "
       "LOTUS_BATCH_PREPROCESSED(i) include it, so that changes can be predicted."},
      share,
      verdict::preprocessing_bound,
      gives_reason | forbids_simulation | forbids_limit};
}

std::optional<finding> steps_take_the_run(const run_facts& f) {
  const path_states steps = f.states(path_kind::step);
  const double most = consumer_by_workers(f).value_or(1);
  const std::optional<finding> unmarked = unmarked_threads(f);
  if (unmarked && unmarked->is) return std::nullopt;
  // Steps that mostly wait for a CPU need one, not less work.
  if (f.d.pushed || f.waits.share() >= waits_much || steps.all < 0.6 || clearly * most >= 1 ||
      2 * steps.queue > steps.all) {
    return std::nullopt;
  }
  return finding{
      "steps",
      phrase{"the consumer's steps have % of the critical path.", {share_word{steps.all}}}.add(
          claims(f.d).may_gain_from_building() ? "" : " Building batches faster would not help."),
      {},
      steps.all,
      verdict::consumer_bound};
}

}  // namespace lotus::tool
