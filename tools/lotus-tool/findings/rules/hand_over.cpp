// Batches were ready, but the consumer received them late: why, by what its own thread did.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "findings/facts/batch_threads.hpp"
#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/quantities.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

constexpr double most_of_it = 0.5;
/// If such waits are a smaller part, they are told in addition to the larger cause.
constexpr double worth_telling = 0.3;

/// The time for which batches were ready, without that in which the consumer waited for a CPU.
double late_ns(const wait_parts& w) {
  return w.own_known ? w.hand_over_ns - w.own_queue_ns : w.hand_over_ns;
}

/// Whether the consumer's thread reads batches from a pipe or socket in its waits: what it does on
/// a CPU then is to copy them.
bool reads_batches(const run_facts& f) {
  constexpr double often = 0.25;
  // Each process that builds batches may have a pipe of its own.
  double from_others = 0;
  for (const blocked_on& one : f.d.blocked_on.waits.by) {
    if (one.reason == wait_reason::pipe || one.reason == wait_reason::socket) {
      from_others += one.share;
    }
  }
  return f.d.blocked_on.waits.samples >= 5 && from_others >= most_of_it &&
         f.waits.own_blocked_ns >= often * late_ns(f.waits);
}

/// Whether an operation has half of the time for which batches are ready, and samples show that it
/// sleeps, as work of a device does, instead of waiting for other threads.
bool has_sleeping_work(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  if (!f.in_late_waits) return false;
  const blocked_list* const list = f.d.blocked_on.of('S' + f.in_late_waits->name);
  if (list == nullptr) return false;
  std::uint64_t asleep = 0;
  for (const blocked_on& one : list->by) {
    if (one.reason == wait_reason::sleep) asleep += one.samples;
  }
  return asleep >= fewest && 2 * asleep >= list->samples;
}

bool works_itself(const run_facts& f) {
  if (has_sleeping_work(f)) return true;
  return f.waits.own_known && f.waits.own_cpu_ns >= most_of_it * late_ns(f.waits) &&
         !reads_batches(f);
}

/// Whether the consumer waits much, mostly for batches that are ready. If its thread waits for a
/// CPU during much of that time, the CPUs are the cause, unless the rest of that time is long too.
/// @param least  which part of the waits must be for such batches.
bool is_handed_over_late(const run_facts& f, double least = most_of_it) {
  const wait_parts& w = f.waits;
  if (f.d.pushed || f.d.makes_itself || w.patterns.windows.every > 0 || w.share() < waits_much)
    return false;
  if (w.hand_over_ns < least * w.all_ns) return false;
  const bool queues = w.own_known && w.own_queue_ns > 0.3 * w.hand_over_ns;
  const double others_ns = w.all_ns + w.steps_ns - w.own_queue_ns;
  const double long_too = works_itself(f) ? waits_much : 0.25;
  if (queues && late_ns(w) < long_too * others_ns) return false;
  // A worker that waits for a CPU may do so before it hands its batch over.
  if (f.d.queued_longer_than_ran && !works_itself(f)) return false;
  // If other programs use the CPUs, threads on the way to the consumer may wait for one.
  const bool crowded = f.others_cpus && *f.others_cpus > 0.25 * f.cpus;
  return !crowded || w.hand_over_ns > 0.25 * (w.all_ns + w.steps_ns);
}

bool sleeps(const run_facts& f) {
  constexpr double fewest = 5;
  double asleep = 0;
  for (const blocked_on& one : f.d.blocked_on.waits.by) {
    if (one.reason == wait_reason::sleep) asleep += static_cast<double>(one.samples);
  }
  return asleep >= fewest &&
         asleep >= most_of_it * static_cast<double>(f.d.blocked_on.waits.samples);
}

/// @param more  what follows "of the 1.36 s that the consumer waited, 1.34 s were for batches that
///   were ready".
finding found(const run_facts& f, std::string_view id, std::string_view more, phrase to_do,
              const std::vector<phrase_word>& values = {}) {
  const wait_parts& w = f.waits;
  phrase because{"of the % that the consumer waited, % were for batches that were ready",
                 {time_word{w.all_ns}, time_word{w.hand_over_ns}}};
  // A consumer without steps is rare, and wait.consumed(i) after the step looks the same.
  if (w.steps_ns < 0.02 * w.all_ns) {
    to_do =
        phrase{"If the wait contains the consumer's step, call wait.consumed(i) before the step. "}
            .add(to_do);
  }
  const double share = w.hand_over_ns / (w.all_ns + w.steps_ns);
  finding late{id, std::move(because.add(more, values)), std::move(to_do), share};
  if (w.hand_over_ns >= most_of_it * w.all_ns) {
    late.is = verdict::hand_over_bound;
    late.effects = gives_reason | forbids_threads;
  }
  return late;
}

/// Returns what follows after "were for batches that were ready" if the threads that built these do
/// something else before they pass them on; empty if not.
phrase kept_words(const run_facts& f) {
  constexpr double nearly_always = 0.8;
  constexpr double mostly = 0.4;
  const kept_batches kept = find_kept_batches(f.run);
  if (kept.share < nearly_always) return {};
  phrase text{
      ". Meanwhile the threads that built them began no other batch: before they pass one on, "};
  const std::optional<operation_sum> between = largest_between_batches(f.run);
  if (between && between->self_ns >= most_of_it * f.waits.hand_over_ns) {
    return text.add("% takes % in all, % in each call.",
                    {name_word{between->name}, time_word{between->self_ns},
                     time_word{between->self_ns / static_cast<double>(between->calls)}});
  }
  if (kept.cpu_share >= mostly && !kept.function.empty()) {
    return text.add("they use the CPU mostly in %.", {name_word{kept.function}});
  }
  const std::optional<sleeping_threads> asleep = asleep_between_batches(f);
  if (!asleep || asleep->asleep_ns < mostly * f.waits.hand_over_ns) return {};
  text.add("they sleep, for about % in all", {time_word{asleep->asleep_ns}});
  if (!asleep->place.empty()) text.add(", in %", {name_word{asleep->place}});
  return text.add(".");
}

/// Returns the operation, or else the function, that takes most of the time for which the consumer
/// has a batch before its wait ends.
busy_function work_in_waits(const run_facts& f) {
  if (f.in_late_waits) return {f.in_late_waits->name};
  return function_outside_operations(f.run, times_of_late_waits(f.run));
}

}  // namespace

std::optional<finding> wait_contains_work(const run_facts& f) {
  if (!is_handed_over_late(f, worth_telling) || !works_itself(f)) return std::nullopt;
  // A thread that uses the CPU in all of its waits does no work on batches there.
  if (wait_spins(f)) return std::nullopt;
  const wait_parts& w = f.waits;
  const bool queues = w.own_queue_ns > 0.2 * w.hand_over_ns;
  phrase to_do{"Do this work in the workers, before a batch counts as ready."};
  // With this work, they may be hardly faster than the run is now.
  constexpr double hardly_faster = 1.2;
  const std::optional<double>& could = f.d.preprocessing_capacity;
  const double moved_ns = w.own_cpu_ns / std::max<double>(1, static_cast<double>(w.waits));
  std::size_t threads = std::max<std::size_t>(1, f.d.workers);
  for (const stage_figures& stage : f.d.stages) {
    if (stage.name == f.d.slowest_stage) threads = std::max<std::size_t>(1, stage.slots);
  }
  const double then_ns = 1e9 / could.value_or(HUGE_VAL) + moved_ns / static_cast<double>(threads);
  const busy_function work = work_in_waits(f);
  if (work.reads) {
    to_do = {"Read a batch while the consumer works, or pass it in shared memory."};
  } else if (f.d.achieved && 1e9 / then_ns < hardly_faster * *f.d.achieved) {
    to_do.add(" They would then hardly be faster than the run, so use more of them.");
  }
  phrase text;
  if (w.own_known) {
    text = {". During % of that time its own thread was on a CPU",
            {share_word{(w.own_cpu_ns + (queues ? w.own_queue_ns : 0)) / w.hand_over_ns}}};
  }
  if (queues) text.add(", or waited for one (%)", {share_word{w.own_queue_ns / w.hand_over_ns}});
  text.add(text.empty() ? ". The wait contains work" : ": the wait contains work");
  if (!work.shown.empty()) text.add(", mostly %", {name_word{work.shown}});
  return found(f, "wait-contains-work", text.add(".").pattern, std::move(to_do), text.with);
}

std::optional<finding> wait_for_cpu(const run_facts& f) {
  constexpr double worth_naming = 0.05;
  const wait_parts& w = f.waits;
  if (f.d.pushed || f.d.makes_itself || !w.own_known || w.share() < worth_naming ||
      w.own_queue_ns < most_of_it * w.all_ns) {
    return std::nullopt;
  }
  return finding{"wait-for-cpu",
                 {"of the % that the consumer waited, batches were ready during %, and its own "
                  "thread waited for a CPU.",
                  {time_word{w.all_ns}, time_word{w.own_queue_ns}}},
                 {},
                 w.own_queue_ns / (w.all_ns + w.steps_ns)};
}

std::optional<finding> wait_polls(const run_facts& f) {
  if (!is_handed_over_late(f, worth_telling) || works_itself(f) || !sleeps(f)) return std::nullopt;
  const auto& by = f.d.blocked_on.waits.by;
  const auto asleep = std::find_if(
      by.begin(), by.end(), [](const blocked_on& one) { return one.reason == wait_reason::sleep; });
  const std::string calls = asleep == by.end() ? std::string() : own_calls(*asleep);
  if (calls.empty()) {
    return found(f, "wait-polls", ", while its own thread was asleep: it polls.",
                 {"Let the thread that builds a batch wake the consumer (condition variable), or "
                  "sleep for a shorter time."});
  }
  return found(f, "wait-polls",
               ", while its own thread was asleep in %: it polls, or does work there that sleeps.",
               {"If it polls, let the thread that builds a batch wake it, or sleep for a shorter "
                "time; otherwise, do this work in the workers."},
               {name_word{calls}});
}

std::optional<finding> wait_spins(const run_facts& f) {
  constexpr double much = 0.25;  // the rest is waits for a CPU
  constexpr double rarely = 0.1;
  if (f.d.pushed || f.d.makes_itself || f.waits.share() < waits_much) return std::nullopt;
  const std::optional<cpu_split> own = cpu_of(f.run, quantity::wait, 0);
  // Where nothing of a wait was measured, all of it seems to be on a CPU.
  if (!own || !own->blocked_ns || own->run_queue_ns.value_or(0) <= 0) return std::nullopt;
  const auto blocked_ns = static_cast<double>(*own->blocked_ns);
  // A thread that is not even blocked until a batch is ready spins; when in a wait it had no CPU is
  // unknown, so what it does while a batch is ready may be the same. Otherwise, that is work.
  const double until_ready_ns = f.waits.all_ns - f.waits.hand_over_ns;
  const bool never_sleeps =
      until_ready_ns >= 0.3 * f.waits.all_ns && blocked_ns <= rarely * until_ready_ns;
  if (!never_sleeps && is_handed_over_late(f)) return std::nullopt;
  const double spins_ns =
      static_cast<double>(own->cpu_ns) - (never_sleeps ? 0 : f.waits.own_cpu_ns);
  const double spins = spins_ns / f.waits.all_ns;
  const double blocked = blocked_ns / f.waits.all_ns;
  // While there are enough CPUs, such a wait takes none of them from the workers.
  const double queued = f.states().queue;
  if (spins < much || blocked > rarely || queued < rarely / 2) return std::nullopt;
  return finding{"wait-spins",
                 {"the consumer's thread uses a CPU during % of the time in which it waits for "
                  "batches (it spins), while work on batches waits for a CPU during % of the run.",
                  {share_word{spins}, share_word{queued}}},
                 {"Let it sleep until a batch is ready, such as at a condition variable."},
                 queued,
                 {},
                 explains_queues};
}

std::optional<finding> wait_of_fixed_time(const run_facts& f) {
  const fixed_waits& fixed = f.waits.patterns.fixed;
  if (!is_handed_over_late(f) || works_itself(f) || sleeps(f) || fixed.count == 0 ||
      !kept_words(f).empty()) {
    return std::nullopt;
  }
  const std::vector<preprocessing_span>& spans = f.run.batches.preprocessing_spans();
  const bool has_items = std::any_of(spans.begin(), spans.end(),
                                     [](const preprocessing_span& s) { return s.of_item; });
  phrase to_do{"Let whoever passes it on wait without timeout or interval, and be notified."};
  if (has_items) {
    to_do.add(
        " A thread that collects items until there are enough, or this time is over, must not "
        "need more of them than are in flight.");
  }
  return found(f, "wait-of-fixed-time",
               ". % of that time is in % that last % each, whenever a batch becomes ready: nothing "
               "passes it on before a fixed time is over.",
               std::move(to_do),
               {share_word{fixed.share}, count_word{fixed.count, "wait", "waits"},
                time_word{fixed.each_ns}});
}

std::optional<finding> slow_hand_over(const run_facts& f) {
  if (!is_handed_over_late(f) || works_itself(f) || sleeps(f)) return std::nullopt;
  const wait_parts& w = f.waits;
  constexpr std::string_view id = "slow-hand-over";
  const phrase kept = kept_words(f);
  if (!kept.empty()) {
    return found(f, id, kept.pattern,
                 {"Do this after the batch was passed on, or let LOTUS_BATCH_PREPROCESSED(i) "
                  "include it."},
                 kept.with);
  }
  if (w.patterns.fixed.count > 0) return std::nullopt;
  if (!w.own_known) {
    return found(f, id, ".",
                 {"Record what is done between the end of LOTUS_BATCH_PREPROCESSED and the end of "
                  "the wait."});
  }
  const std::vector<blocked_on>& by = f.d.blocked_on.waits.by;
  if (reads_batches(f)) {
    const std::string calls = own_calls(by.front());
    phrase text{". Meanwhile its own thread %", {name_word{wait_phrase(by.front(), {})}}};
    if (!calls.empty()) text.add(", in %", {name_word{calls}});
    // What takes longer than the steps takes too long while they run, too.
    return found(f, id, text.add(".").pattern,
                 {w.hand_over_ns > w.steps_ns
                      ? "Pass a batch in larger pieces (a larger buffer of the pipe or socket), or "
                        "in shared memory."
                      : "Read the batch before the consumer asks for it, or pass it in shared "
                        "memory."},
                 text.with);
  }
  // Without samples it is unknown whether the thread slept or waited for another.
  if (f.d.blocked_on.waits.samples < 5) {
    return found(f, id, ". Its own thread was blocked or asleep meanwhile.",
                 {"Look at what the consumer does in its wait, and at what passes batches on to it "
                  "(put LOTUS_STAGE(name, i) into it)."});
  }
  if (w.ready_before > w.waits / 2) {
    return found(
        f, id,
        "; most had been ready for % before it received them. Its own thread was blocked "
        "meanwhile: something between the workers and the consumer passes batches on too slowly, "
        "or the wait lasts for a fixed time.",
        {"Make the step that passes batches on faster, or use several threads for it (put "
         "LOTUS_STAGE(name, i) into it to see its time). If there is none, notify the consumer "
         "when "
         "a batch is ready."},
        {time_word{w.mean_ready_for_ns}});
  }
  return found(f, id,
               ". Its own thread was blocked meanwhile: it learns too late that a batch is ready.",
               {"Wake the consumer as soon as a batch is ready; put LOTUS_STAGE(name, i) into a "
                "step that passes batches on to see its time."});
}

std::optional<finding> refilled_in_windows(const run_facts& f) {
  const window_waits& windows = f.waits.patterns.windows;
  if (f.d.pushed || windows.every == 0 || f.waits.share() < waits_much || buffer_filled_first(f)) {
    return std::nullopt;
  }
  // Workers that build a window while the consumer waits seem to build on demand.
  if (f.d.makes_itself && !f.d.on_demand) return std::nullopt;
  finding found{
      "refilled-in-windows",
      {"% of the waiting is done at every % batch (% each): batches are built in "
       "windows, and a window begins only when the batches of the one before were "
       "received. Until then, nobody builds.",
       {share_word{windows.share}, ordinal_word{windows.every}, time_word{windows.mean_ns}}},
      {"Begin the next batch whenever one was received."},
      f.waits.share(),
      verdict::hand_over_bound,
      gives_reason | forbids_threads};
  found.title = "Batches are begun too late";
  return found;
}

std::optional<finding> passed_on_together(const run_facts& f) {
  const wait_parts& w = f.waits;
  const window_waits& at = w.patterns.regular;
  if (f.d.pushed || f.d.makes_itself || at.every == 0 || w.share() < waits_much ||
      w.patterns.windows.every > 0 || w.patterns.fixed.count > 0 || works_itself(f) || sleeps(f)) {
    return std::nullopt;
  }
  // What a stage finds when it wakes up comes together, too.
  if (f.asleep || buffer_filled_first(f)) return std::nullopt;
  // Threads that work in step are ready together, too. Then few batches wait for each other.
  std::size_t threads = std::max(f.d.living_workers, f.d.workers);
  for (const stage_figures& stage : f.d.stages) threads = std::max(threads, stage.slots);
  // A slow batch for which later ones wait is received as soon as it is ready.
  const bool is_late = w.between_ns + w.hand_over_ns >= worth_telling * w.all_ns &&
                       w.between_ns + w.hand_over_ns + w.order_ns >= most_of_it * w.all_ns;
  if (2 * at.every <= 3 * threads || !is_late) return std::nullopt;
  return finding{"passed-on-together",
                 {"% of the waiting is done at every % batch (% each), and mostly while other "
                  "batches are ready: something collects several before it passes them on.",
                  {share_word{at.share}, ordinal_word{at.every}, time_word{at.mean_ns}}},
                 {"Pass each batch on when it is ready, and build the next ones meanwhile."},
                 w.share(),
                 verdict::hand_over_bound,
                 gives_reason | forbids_threads};
}

}  // namespace lotus::tool
