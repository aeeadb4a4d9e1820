// The consumer has nothing to do, and most workers build nothing: something keeps them from it.
#include "findings/facts/idle_workers.hpp"

#include <cstddef>
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t fewest_begins = 10;

bool is_starved(const run_facts& f) {
  return !f.d.pushed && !f.d.makes_itself && f.waits.patterns.windows.every == 0 &&
         f.waits.share() >= waits_much && f.started.count == 0 && f.for_each_batch.threads == 0 &&
         f.idle.workers > 1 && f.idle.starved_ns >= 0.5 * f.waits.all_ns;
}

/// Whether most workers build nothing while the consumer waits, and not for want of a CPU or
/// because they work outside of the markers.
bool are_idle(const run_facts& f) {
  constexpr double few = 0.6;
  const bool works_unmarked =
      f.unmarked_cpus >= 0.25 && (!f.unmarked_in || f.unmarked_in->have_markers);
  return is_starved(f) && f.idle.begins >= fewest_begins && f.states().queue < 0.1 &&
         !works_unmarked && f.idle.building < few * static_cast<double>(f.idle.workers);
}

phrase few_build(const idle_workers& idle) {
  return {"while the consumer waited and no batch was ready, only % of % built one on average: ",
          {count_word{idle.building}, count_word{idle.workers, "worker", "workers"}}};
}

}  // namespace

bool is_unlimited(const idle_workers& idle) {
  constexpr double often = 0.6;
  return idle.begins >= fewest_begins && idle.share_after_reception() < often;
}

std::optional<finding> workers_ended(const run_facts& f) {
  if (!is_starved(f) || f.idle.ended == 0 || f.waits.epochs > 1) return std::nullopt;
  return finding{
      "workers-ended",
      {"% of % built no batch after % of the run, but the consumer waited for more: they ended, "
       "or the batches are distributed unevenly.",
       {count_word{f.idle.ended}, count_word{f.idle.workers, "worker", "workers"},
        share_word{f.idle.ended_at}}},
      worker_ended_early(f) ? phrase{}
                            : phrase{"Let each worker take the next batch when it is free."},
      f.waits.share(),
      verdict::preprocessing_bound,
      gives_reason | doubts_threads};
}

std::optional<finding> workers_wait_for_consumer(const run_facts& f) {
  constexpr double nearly_always = 0.7;
  if (!are_idle(f) || share_without_builder(f) > 0 || f.idle.begins < 2 * fewest_begins ||
      f.idle.share_after_reception() < nearly_always) {
    return std::nullopt;
  }
  // At a barrier of the workers, several begin after one reception, and none after others.
  constexpr double often = 0.6;
  if (static_cast<double>(f.idle.at_limit) < often * static_cast<double>(f.idle.begins)) {
    return std::nullopt;
  }
  return finding{"workers-wait-for-consumer",
                 few_build(f.idle).add("the others begin one only when the consumer has received "
                                       "one (a limit of batches in flight, or a barrier)."),
                 {"Let more batches be in flight."},
                 f.waits.share(),
                 verdict::prefetch_bound,
                 forbids_threads};
}

std::optional<finding> workers_begin_late(const run_facts& f) {
  if (!are_idle(f) || share_without_builder(f) > 0 || workers_wait_for_consumer(f))
    return std::nullopt;
  return finding{"workers-begin-late",
                 few_build(f.idle).add(
                     "something outside of LOTUS_BATCH_PREPROCESSED(i) keeps the others from it (a "
                     "lock or a thread that hands batches out, a limit, a barrier, a sleep)."),
                 {"Find out what the workers do or wait for between two batches."},
                 f.waits.share(),
                 verdict::preprocessing_bound,
                 gives_reason | forbids_threads | (is_unlimited(f.idle) ? forbids_limit : 0U)};
}

}  // namespace lotus::tool
