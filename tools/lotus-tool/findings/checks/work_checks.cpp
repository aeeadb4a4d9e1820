// Checks of the operations: which of them no marker of a batch contains.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "findings/checks/checked_run.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/words.hpp"

namespace lotus::tool {
namespace {

/// Returns a list such as "SDecode, SCrop and 3 more".
/// @param all  the number of names, of which `names` may contain only the first ones.
name_word listed(const std::vector<std::string>& names, std::size_t all) {
  constexpr std::size_t shown = recorded_work::named;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (all > shown) text += " and " + std::to_string(all - shown) + " more";
  return {text};
}

}  // namespace

void unrecorded_work(checked_run& r) {
  const double all_ns = r.work.all_ns - r.work.copies_ns;
  if (all_ns <= 0 || r.work.outside_ns <= 0.2 * all_ns) return;
  // If the consumer hardly waits, work that was not recorded does not limit the run.
  const wait_parts waits = r.waits;
  // What a consumer does with a batch before its wait ends is known, and said by a finding.
  constexpr double mostly = 0.5;
  const bool is_explained =
      r.work.in_waits_ns > mostly * r.work.outside_ns && waits.hand_over_ns > mostly * waits.all_ns;
  if (is_explained) return;
  // What is called only now and then serves several batches, so it is no part of one.
  const bool serves_several = 3 * r.work.calls_outside <= r.run.batches.all().size();
  // A finding says what the threads that build batches do between these.
  const std::optional<operation_sum> between = largest_between_batches(r.run);
  const bool is_told = between && between->self_ns > mostly * r.work.outside_ns;
  const bool limits =
      (waits.waits == 0 || waits.share() > waits_much) && !serves_several && !is_told;
  r.fail("unrecorded-work", limits,
         {"% of the operations' time is outside any batch or stage: %",
          {exact_share_word{r.work.outside_ns / all_ns},
           listed(r.work.outside, r.work.operations_outside)}},
         {"put LOTUS_STAGE(name, i) around the work on batch or item i, or "
          "LOTUS_BATCH_PREPROCESSED(i) around everything that one thread does for batch i"});
}

void twice(checked_run& r) {
  if (r.work.copies < 2 || 5 * r.work.copies <= r.run.batches.all().size()) return;
  // Ignore the operations that were apparently done twice if they took less than 1 % of the time.
  // An example is the last call of a reader, which finds the end of the data and returns no
  // batch.
  if (r.work.copies_ns < 0.01 * r.work.all_ns) return;
  r.fail(
      "twice", true,
      {"% ran outside batches in the same way as inside a batch, %: work may be done twice",
       {listed(r.work.copied, r.work.copied.size()), count_word{r.work.copies, "time", "times"}}},
      {"build each batch once, inside LOTUS_BATCH_PREPROCESSED(i)"});
}

void overlap(checked_run& r) {
  if (r.work.overlaps == 0) return;
  r.fail(
      "overlap", r.work.overlaps_in_batches > 0,
      {"% of the same thread (% and % in %): a scope began on one thread and ended on another",
       {count_word{r.work.overlaps, "span partly overlaps another", "spans partly overlap others"},
        name_word{r.work.overlap.first}, name_word{r.work.overlap.second},
        name_word{r.run.files->files[r.work.overlap.file].path}}},
      {"use lotus::async_scope for an operation that pauses or continues on another thread"});
}

void oversubscribed(checked_run& r) {
  constexpr double many = 0.1;
  const busy_threads busy = count_busy_threads(r.run);
  // It is harmless that more threads than CPUs have work if they rarely wait for a CPU, for
  // example because they sleep.
  if (busy.over_share < many || busy.queued_share.value_or(1) < many) return;
  phrase text{"up to % threads % at once on %. ",
              {count_word{busy.most}, name_word{busy.queued_share ? "were busy" : "had work"},
               count_word{busy.cpus, "CPU", "CPUs"}}};
  if (busy.queued_share) {
    text.add("All times include waits for a CPU (% of the threads' time)",
             {exact_share_word{*busy.queued_share}});
  } else {
    text.add("If the threads waited for a CPU, times and rates include these waits");
  }
  r.fail("oversubscribed", false, std::move(text),
         {busy.blocked_share.value_or(0) > 0.5
              ? "use more CPUs; fewer threads are hardly as fast, because they are blocked most of "
                "the time"
              : "use more CPUs, or measure whether fewer threads are as fast"});
}

}  // namespace lotus::tool
