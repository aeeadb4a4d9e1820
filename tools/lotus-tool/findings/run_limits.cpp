#include "findings/run_limits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/facts/facts.hpp"
#include "findings/gains.hpp"

namespace lotus::tool {
namespace {

/// Returns the share (0..1) of the threads' working time during which they waited for a CPU.
double share_without_cpu(const recorded_pipeline& p) {
  const measured_work all = p.all_work();
  return p.cpu_known && all.all_ns() > 0 ? all.queued_ns / all.all_ns() : 0;
}

/// Returns whether there are many more workers than CPUs, and these hardly sleep, so that more of
/// them only take turns. While others wait for a CPU, a sleep is not on the path, but one more
/// worker still uses that time.
bool take_turns(const diagnosis& d) {
  constexpr double hardly = 0.1;
  const double blocked = states_of(d.path).blocked - states_of(d.path, path_kind::step).blocked;
  // If each batch has a thread of its own, these are batches in flight.
  return !d.thread_for_each && d.cpus && static_cast<double>(d.workers) >= 2 * *d.cpus &&
         blocked < hardly && d.blocked_of_work < hardly;
}

}  // namespace

phrase bound_words(const prediction& of) {
  constexpr double clearly = 1.02;
  if (of.bounded_by.empty() || of.per_s < clearly * of.bounded_per_s) return {};
  return {of.bounded_by_rate ? "% may be called more often" : "% keeps up",
          {name_word{of.bounded_by}}};
}

phrase service_words(double could_per_s, double per_s) {
  return {
      "the stages could process %, but received only %. The program seems to be a service "
      "that waits for requests. 'lotus-tool stats' shows how long its requests take",
      {rate_word{could_per_s}, rate_word{per_s}}};
}

phrase why_unlike(const fitted_model& run, const phrase& unmarked_in) {
  if (!run.is_unlike()) return {};
  if (run.fitted() < run.achieved()) {
    return {
        "by the recorded times, only % are possible, but the run reached %. More work ran in "
        "parallel than the logs show",
        {rate_word{run.fitted()}, rate_word{run.achieved()}}};
  }
  constexpr double worth_saying = 0.1;
  const recorded_pipeline& p = run.recorded();
  const double no_cpu = share_without_cpu(p);
  if (!p.has_consumer && no_cpu < worth_saying) {
    return service_words(run.fitted(), run.achieved());
  }
  phrase text{
      "by the recorded times, % are possible, but the run reached only %. The logs do not "
      "show what slows the run down",
      {rate_word{run.fitted()}, rate_word{run.achieved()}}};
  if (no_cpu >= worth_saying) {
    text.add(". Recorded work waited for a CPU during % of its time", {exact_share_word{no_cpu}});
    if (p.others_cpus && *p.others_cpus >= 0.25 * p.cpus.value_or(1)) {
      text.add(", and other programs used % CPUs. Record again on an idle machine",
               {count_word{*p.others_cpus}});
    }
  }
  const double unrecorded = unrecorded_cpu_share(p);
  // A share of nearly nothing explains nothing.
  const double used_cpus = p.unrecorded_cpu_ns / run.run_ns();
  if (unrecorded >= worth_saying && used_cpus >= worth_saying * p.cpus.value_or(1)) {
    text.add(". Code outside of all markers used % of the CPU time",
             {exact_share_word{unrecorded}});
    if (unmarked_in.empty()) {
      text.add(". 'lotus-tool run' and then 'lotus-tool threads' show which functions these are");
    } else {
      text.add(", most of it in ").add(unmarked_in);
    }
  }
  return text;
}

bool is_limited_by_cpus(const what_if& run, const pipeline_change& change) {
  const recorded_pipeline& p = run.recorded();
  if (!p.cpu_known || !p.cpus) return false;
  pipeline_change more = change;
  more.cpus = 2 * change.cpus.value_or(*p.cpus);
  return run.guess(more).gain >= (1 + worthwhile) * run.guess(change).gain;
}

double unrecorded_cpu_share(const recorded_pipeline& p) {
  const double all_ns = p.unrecorded_cpu_ns + p.all_work().cpu_ns;
  return all_ns > 0 ? p.unrecorded_cpu_ns / all_ns : 0;
}

phrase limit_words(const what_if& run, const run_data& data, const run_blocked_on& joined) {
  const std::size_t unfinished = run.recorded().unfinished;
  if (unfinished != unbounded) {
    return {
        "the number of items in the stages is limited to %, so more threads do not help: raise "
        "this limit",
        {count_word{unfinished}}};
  }
  const what_if::limited_operation found = run.limited();
  if (found.name.empty()) return {};
  const name_word name{found.name};
  const std::optional<double> steady = steady_ends_per_s(data, found.name);
  if (steady) {
    return steady_rate_words(found.name, *steady).add(". More workers do not help");
  }
  if (!shows_limit(data, joined, found.name, found.most)) return {};
  const name_word by{run.recorded().cpu_known ? "a lock, a device or a limit"
                                              : "a lock, a device, a limit or CPUs"};
  if (found.most == 1) {
    return {
        "% runs only once at a time (%). More workers do not help. Make % faster, use several "
        "locks or devices, or hold the lock for a shorter time",
        {name, by, name}};
  }
  return {"at most % calls of % run at the same time (%). More workers do not help",
          {count_word{found.most}, name, by}};
}

bool hardly_needs_cpus(const recorded_pipeline& p) {
  const measured_work all = p.all_work();
  return p.cpu_known && all.queued_ns < 0.07 * all.all_ns() &&
         all.cpu_ns + all.queued_ns < 0.25 * all.all_ns();
}

bool others_used_cpus(const what_if& run) {
  const std::optional<double> others = run.recorded().others_cpus;
  return run.others_share() > 0 && !hardly_needs_cpus(run.recorded()) &&
         (!others || *others >= 0.5 * run.others_share() * run.recorded().cpus.value_or(1));
}

phrase held_lock_words(const what_if& run) {
  const std::optional<sampled_lock>& lock = run.recorded().lock;
  const name_word which{lock ? lock->name : "a lock"};
  if (run.has_unknown_lock()) {
    return {
        "several operations wait for %: if work under it becomes faster, they may wait less; "
        "the intervals include this",
        {which}};
  }
  const std::optional<what_if::lock_holder> held = run.lock_held();
  if (!held) return {};
  return {
      "% holds % for % of the time in which it does not wait for it (estimated from wait "
      "samples)",
      {name_word{held->name}, which, share_word{held->share}}};
}

phrase slowing_words(const what_if& run) {
  const double slowing = run.law().law.slowing;
  const bool none = std::lround(100 * slowing) == 0;
  return {"code takes % more CPU time if all CPUs are busy than if only one is (%)",
          {none ? phrase_word(name_word{"no"}) : phrase_word(share_word{slowing}),
           name_word{run.law().levels_seen ? "measured" : "a rough estimate"}}};
}

phrase free_cpus_words(std::optional<double> others_cpus, std::optional<double> cpus) {
  constexpr double many = 0.1;
  if (!others_cpus || *others_cpus < many * cpus.value_or(1)) {
    return {"no other program uses the CPUs"};
  }
  return {"other programs no longer use CPUs (they used %)", {count_word{*others_cpus}}};
}

phrase without_cpu_words(const diagnosis& d) {
  constexpr double worth_telling = 0.2;
  const double cpus = d.cpus.value_or(0);
  const bool own = d.cpu_ns && *d.cpu_ns >= 0.5 * d.run_ns * cpus;
  const bool others = !own && d.others_cpus.value_or(0) >= 0.5 * cpus && cpus > 0;
  phrase text{"the workers wait for a CPU longer than they run"};
  if (d.cpus && own && static_cast<double>(d.workers) > cpus) {
    text = {
        "% %, so they wait for a CPU longer than they run",
        {count_word{d.workers, "worker shares", "workers share"}, count_word{cpus, "CPU", "CPUs"}}};
  } else if (others) {
    text.add(": other programs use % of %",
             {count_word{*d.others_cpus}, count_word{cpus, "CPU", "CPUs"}});
  }
  text.add(".");
  const auto most = std::find_if(d.path.shares.begin(), d.path.shares.end(), is_work);
  if (most != d.path.shares.end() && most->cpu) {
    const std::string wait =
        waiting_text(d.blocked_on, most->name, most->cpu->blocked_ns, most->ns, worth_telling);
    if (!wait.empty()) text.add(" %.", {name_word{wait}});
  }
  // If other programs compete for the CPUs, more threads get a larger part of them.
  return !others && take_turns(d) ? text.add(" % would do: more of them only take turns.",
                                             {count_word{cpus, "worker", "workers"}})
                                  : text;
}

phrase others_words(const what_if& run, bool is_predicted) {
  return phrase{"other programs used % of the CPU time that this run could have used",
                {share_word{run.others_share()}}}
      .add(is_predicted ? ". Therefore predictions are rough: record again on an idle machine"
                        : ". Record again on an idle machine");
}

}  // namespace lotus::tool
