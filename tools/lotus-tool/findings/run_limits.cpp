#include "findings/run_limits.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/terminal/table.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis_text.hpp"
#include "findings/facts/steady_ends.hpp"
#include "findings/gains.hpp"
#include "findings/verdict.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

/// Returns the share (0..1) of the threads' working time during which they waited for a CPU.
double share_without_cpu(const recorded_pipeline& p) {
  if (!p.cpu_known) return 0;
  double queued_ns = 0;
  double all_ns = 0;
  for (const std::vector<measured_work>* const all : {&p.works, &p.steps}) {
    for (const measured_work& w : *all) {
      queued_ns += w.queued_ns;
      all_ns += w.cpu_ns + w.blocked_ns + w.queued_ns;
    }
  }
  return all_ns > 0 ? queued_ns / all_ns : 0;
}

}  // namespace

std::string why_unlike(const fitted_model& run) {
  if (!run.is_unlike()) return {};
  if (run.fitted() < run.achieved()) {
    return "by the recorded times, only " + rate(run.fitted()) +
           " are possible, but the run reached " + rate(run.achieved()) +
           ". More work ran in parallel than the logs show";
  }
  constexpr double worth_saying = 0.1;
  const double no_cpu = share_without_cpu(run.recorded());
  if (!run.recorded().has_consumer && no_cpu < worth_saying) {
    return "the stages could process " + rate(run.fitted()) + ", but received only " +
           rate(run.achieved()) +
           ". The program seems to be a service that waits for requests. 'lotus-tool stats' shows "
           "how long its requests take";
  }
  std::string text = "by the recorded times, " + rate(run.fitted()) +
                     " are possible, but the run reached only " + rate(run.achieved()) +
                     ". The logs do not show what slows the run down";
  if (no_cpu >= worth_saying) {
    text += ". Recorded work waited for a CPU during " + human_share(no_cpu) + " of its time";
    const std::optional<double> others = run.recorded().others_cpus;
    if (others && *others >= 0.25 * run.recorded().cpus.value_or(1)) {
      text += ", and other programs used " + three_digits(*others) +
              " CPUs. Record again on an idle machine";
    }
  }
  const recorded_pipeline& p = run.recorded();
  const double unrecorded = unrecorded_cpu_share(p);
  // A share of nearly nothing explains nothing.
  const double used_cpus = p.unrecorded_cpu_ns / run.run_ns();
  if (unrecorded >= worth_saying && used_cpus >= worth_saying * p.cpus.value_or(1)) {
    text += ". Code outside of all markers used " + human_share(unrecorded) +
            " of the CPU time. 'lotus-tool run' and then 'lotus-tool threads' show which functions "
            "these are";
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
  const double all_ns = p.unrecorded_cpu_ns + p.recorded_cpu_ns();
  return all_ns > 0 ? p.unrecorded_cpu_ns / all_ns : 0;
}

std::string limit_text(const what_if& run, const run_data& data, const run_blocked_on& joined) {
  const std::size_t unfinished = run.recorded().unfinished;
  if (unfinished != unbounded) {
    return "the number of items in the stages is limited to " + std::to_string(unfinished) +
           ", so more threads do not help: raise this limit";
  }
  const what_if::limited_operation found = run.limited();
  if (found.name.empty()) return {};
  const std::optional<double> steady = steady_ends_per_s(data, found.name);
  if (steady) {
    return "calls of " + found.name + " end at a steady " + three_digits(*steady) +
           " per second, however many of them overlap: something serves them one after another. "
           "More workers do not help";
  }
  if (!shows_limit(data, joined, found.name, found.most)) return {};
  const std::string by = run.recorded().cpu_known ? "a lock, a device or a limit"
                                                  : "a lock, a device, a limit or CPUs";
  if (found.most == 1) {
    return found.name + " runs only once at a time (" + by + "). More workers do not help. Make " +
           found.name +
           " faster, use several locks or devices, or hold the "
           "lock for a shorter time";
  }
  return "at most " + std::to_string(found.most) + " calls of " + found.name +
         " run at the same time (" + by + "). More workers do not help";
}

bool others_used_cpus(const what_if& run) {
  const std::optional<double> others = run.recorded().others_cpus;
  return run.others_share() > 0 &&
         (!others || *others >= 0.5 * run.others_share() * run.recorded().cpus.value_or(1));
}

std::string held_lock_text(const what_if& run) {
  const std::optional<sampled_lock>& lock = run.recorded().lock;
  const std::string which =
      lock && !lock->name.empty() ? "the lock " + lock->name : std::string("a lock");
  if (run.has_unknown_lock())
    return "several operations wait for " + which +
           ": if work under it becomes faster, they may wait less; the intervals include this";
  const std::optional<what_if::lock_holder> held = run.lock_held();
  if (!held) return {};
  return held->name + " holds " + which + " for " + std::to_string(std::lround(100 * held->share)) +
         " % of the time in which it does not wait for it (estimated from wait samples)";
}

std::string slowing_text(const what_if& run) {
  const long percent = std::lround(100 * run.law().law.slowing);
  return "code takes " + (percent == 0 ? std::string("no") : std::to_string(percent) + " %") +
         " more CPU time if all CPUs are busy than if only one is (" +
         (run.law().levels_seen ? "measured)" : "a rough estimate)");
}

std::string free_cpus_text(std::optional<double> others_cpus, std::optional<double> cpus) {
  constexpr double many = 0.1;
  if (!others_cpus || *others_cpus < many * cpus.value_or(1)) {
    return "no other program uses the CPUs";
  }
  return "other programs no longer use CPUs (they used " + three_digits(*others_cpus) + ")";
}

std::string others_text(const what_if& run) {
  return "other programs used " + std::to_string(std::lround(100 * run.others_share())) +
         " % of the CPU time that this run could have used. Therefore predictions are rough: "
         "record again on an idle machine";
}

}  // namespace lotus::tool
