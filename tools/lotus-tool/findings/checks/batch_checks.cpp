// Checks of the batches: their numbers, and when they were built and received.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "findings/checks/checked_run.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/words.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Counts the batches that were received before they were ready, which indicates wrong markers. A
/// difference of up to 1 ms or 10 % of the preprocess time is ignored, because a thread may need
/// this long to end its span.
/// @param before_it_began  set to true if a batch was received before its preprocessing began.
std::size_t consumed_too_early(const run_batches& batches, bool& before_it_began) {
  constexpr double late_ns = 1e6;
  std::size_t early = 0;
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.made(b);
    const std::optional<std::int64_t> at = batches.delivery_ns(b);
    if (!made || !at) continue;
    const double slack_ns = std::max(late_ns, 0.1 * static_cast<double>(made->duration_ns()));
    if (static_cast<double>(*at) + slack_ns < static_cast<double>(made->end_ns)) ++early;
    before_it_began =
        before_it_began || static_cast<double>(*at) + late_ns < static_cast<double>(made->start_ns);
  }
  return early;
}

/// Returns whether the consumers' threads themselves built nearly all batches, outside of their
/// waits, and took a tenth of the run or more for that.
bool built_outside_of_waits(const run_data& run) {
  const run_batches& batches = run.batches;
  std::size_t received = 0;
  std::size_t outside = 0;
  std::int64_t outside_ns = 0;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (!s.batch || !s.file) continue;
    const batch& b = batches.at(*s.batch);
    const batch_record* const wait = batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    ++received;
    if (run.log(*s.file).number != run.log(wait->file).number || s.end_ns() > wait->start_ns)
      continue;
    ++outside;
    outside_ns += s.duration_ns;
  }
  return received > 0 && 10 * outside >= 9 * received && 10 * outside_ns >= batches.length_ns();
}

}  // namespace

/// Returns whether consumers mostly receive the first batch of an epoch before the threads could
/// have built `several` of it, so that what they built is what it asked for.
bool receive_at_once(const run_batches& batches, std::size_t several) {
  std::map<std::size_t, std::int64_t> first_ns;  // of each epoch: the first reception
  for (const batch& b : batches.all()) {
    const std::optional<std::int64_t> at_ns = batches.delivery_ns(b);
    if (!at_ns) continue;
    std::int64_t& first = first_ns.try_emplace(b.epoch, INT64_MAX).first->second;
    first = std::min(first, *at_ns);
  }
  std::map<std::size_t, std::size_t> built;  // of each epoch: before that
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.made(b);
    const auto first = first_ns.find(b.epoch);
    if (made && first != first_ns.end() && made->end_ns < first->second) ++built[b.epoch];
  }
  const auto late = static_cast<std::size_t>(std::count_if(
      built.begin(), built.end(), [several](const auto& of) { return of.second >= several; }));
  return 2 * late < first_ns.size();
}

/// Macros of batches in the loop over items: far more batches were built than received.
void items_as_batches(checked_run& r) {
  constexpr std::size_t many = 3;
  std::size_t received = 0;
  for (const epoch_times& epoch : r.run.batches.epochs()) received += epoch.delivered;
  const std::size_t discarded = r.run.batches.discarded();
  if (r.run.files->is_part() || received < few_batches / 2 || discarded < many * received ||
      r.has("same-number"))
    return;
  const phrase text{"% batches were built, but only % received",
                    {count_word{received + discarded}, count_word{received}}};
  if (receive_at_once(r.run.batches, (received + discarded) / (2 * received))) {
    return r.fail("batches-in-vain", false, text,
                  {"let the workers stop when the consumer takes no more, or build fewer ahead"});
  }
  r.fail("items-as-batches", true, text,
         {"put LOTUS_BATCH_PREPROCESSED(i) around the work on a whole batch; for items, use "
          "LOTUS_STAGE(name, item) and LOTUS_BATCH_TAKES(batch, item)"});
}

/// A wait that is created after the call that returns the batch: the consumer's own thread built
/// the batches before, or each batch became ready just before a wait of nearly no time, again and
/// again.
void late_waits(checked_run& r) {
  constexpr double hardly = 0.01;
  const wait_parts& waits = r.waits;
  if (waits.waits < few_batches || waits.share() > hardly || waits.steps_ns <= 0) return;
  if (built_outside_of_waits(r.run)) {
    return r.fail(
        "late-waits", true,
        {"the consumer's own thread builds the batches, but outside of its waits, so these "
         "take almost no time"},
        {"create lotus::batch_wait before this thread builds a batch, or the first of "
         "several"});
  }
  const double step_ns = waits.steps_ns / static_cast<double>(waits.waits);
  std::size_t just_ready = 0;
  std::size_t in_step = 0;  // batches whose work also began in this step
  std::optional<std::int64_t> step_began_ns;
  for (const batch& b : r.run.batches.all()) {
    const batch_record* const wait = r.run.batches.record(b.wait);
    const std::optional<time_span> made = r.run.batches.made(b);
    const std::optional<std::int64_t> began_ns = step_began_ns;
    step_began_ns = r.run.batches.delivery_ns(b);
    if (wait == nullptr || wait->is_marker() || !made) continue;
    const auto ready_ns = static_cast<double>(wait->start_ns - made->end_ns);
    if (ready_ns < 0) continue;
    if (ready_ns < 0.05 * step_ns) ++just_ready;
    if (began_ns && made->start_ns >= *began_ns) ++in_step;
  }
  // On a busy machine a call may return long after the batch has become ready.
  const bool nearly_each = 4 * just_ready >= 3 * waits.waits;
  if (!nearly_each && (10 * in_step < 9 * waits.waits || 3 * just_ready < waits.waits)) return;
  r.fail("late-waits", true,
         {"nearly each batch became ready during a step, just before a wait of almost no time: the "
          "wait seems to begin after the batch was received"},
         {"create lotus::batch_wait before the call that returns the batch"});
}

void negative_delay(checked_run& r) {
  if (r.has("same-number") || r.has("other-numbers")) return;
  bool before_it_began = false;
  const std::size_t early = consumed_too_early(r.run.batches, before_it_began);
  if (!before_it_began && (early < 2 || 20 * early <= r.run.batches.all().size())) return;
  r.fail("negative-delay", true,
         {"% received before being built", {count_word{early, "batch was", "batches were"}}},
         {before_it_began
              ? "pass LOTUS_BATCH_CONSUMED the number under which the batch was built, and give "
                "each loader its own name with LOTUS_LOADER(name)"
              : "end the block of LOTUS_BATCH_PREPROCESSED(i) before the batch is put into the "
                "queue, and pass LOTUS_BATCH_CONSUMED the number under which it was built"});
}

void loaders_mixed(checked_run& r) {
  if (r.has("same-number")) return;
  const phrase by = mixed_sequences(r.run, r.work);
  if (by.empty()) return;
  r.fail("loaders-mixed", true, phrase{"several loaders are recorded as one: "}.add(by),
         {"give each loader a name with LOTUS_LOADER(name), or record each process into its own "
          "folder"});
}

void segments(checked_run& r) {
  if (!r.run.batches.in_parts() || !r.run.side.stages.empty()) return;
  r.fail("pieces", false,
         {"batches were preprocessed in several parts: the preprocess time of a batch is the time "
          "in which at least one thread worked on it"},
         {"name the parts with LOTUS_STAGE(name, i) to tell them apart"});
}

void consumed_late(checked_run& r) {
  // If the check "loaders-mixed" or "negative-delay" failed, an SBatchConsumed record may be
  // paired with the wait for another batch, so the time between the two has no meaning.
  if (!r.run.batches.consumed_late() || r.has("loaders-mixed") || r.has("negative-delay")) return;
  r.fail("consumed-late", false,
         {"% of the consumer's time is between the end of a wait and LOTUS_BATCH_CONSUMED, which "
          "seems to come after the step: steps are measured from the end of the wait",
          {exact_share_word{r.run.batches.late_share()}}},
         {"put LOTUS_BATCH_CONSUMED(i) right after the wait"});
}

void short_run(checked_run& r) {
  const std::size_t n = r.run.batches.all().size();
  if (n == 0 || n >= few_batches) return;
  r.fail(
      "short", false,
      {"only % recorded, so all rates are uncertain", {count_word{n, "batch was", "batches were"}}},
      {"record more batches, at least %", {count_word{few_batches}}});
}

}  // namespace lotus::tool
