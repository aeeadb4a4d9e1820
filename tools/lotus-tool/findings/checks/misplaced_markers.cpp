// Finds batch macros in the wrong place, or with another number than on the other side.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "findings/checks/checked_run.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// The smallest and the largest number of some batches.
struct number_range {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t number) {
    first = std::min(first, number);
    last = std::max(last, number);
  }
};

/// How many batches were marked where they are built, and where they are received.
struct both_sides {
  std::size_t built = 0;
  std::size_t received = 0;
  std::size_t both = 0;
  number_range built_numbers;
  number_range received_numbers;

  explicit both_sides(const run_batches& batches) {
    for (const batch& b : batches.all()) {
      const bool is_built = batches.made(b).has_value();
      const bool is_received = batches.delivery_ns(b).has_value();
      if (is_built) built_numbers.add(b.index);
      if (is_received) received_numbers.add(b.index);
      built += is_built ? 1 : 0;
      received += is_received ? 1 : 0;
      both += is_built && is_received ? 1 : 0;
    }
  }

  /// Returns how much larger all numbers of built batches are than those under which they are
  /// received: the first and the last numbers differ by this, and only they are missing.
  std::int64_t shift(std::size_t epochs) const {
    const std::int64_t first = built_numbers.first - received_numbers.first;
    const std::int64_t last = built_numbers.last - received_numbers.last;
    const std::size_t missing = static_cast<std::size_t>(std::abs(first)) * epochs;
    const bool is_shifted = first == last && built - both == missing && received - both == missing;
    return is_shifted ? first : 0;
  }
};

constexpr const char* same_numbers =
    "pass the number of a batch to LOTUS_BATCH_PREPROCESSED where it is built, and the same number "
    "to consumed() where it is received";

}  // namespace

/// Batches have another number where they are built than where they are received.
void other_numbers(checked_run& r) {
  if (!r.shows_all_markers()) return;
  const run_batches& batches = r.run.batches;
  const both_sides sides(batches);
  if (sides.built == 0 || sides.received < enough_batches) return;
  const std::size_t unbuilt = sides.received - sides.both;
  if (10 * sides.built <= sides.received) {
    return r.fail("few-built", true,
                  {"only % of the % received batches were marked where they are built",
                   {count_word{sides.both}, count_word{sides.received}}},
                  {"put LOTUS_BATCH_PREPROCESSED(i) into the loop over batches, around the work on "
                   "one batch, with its number"});
  }
  if (2 * unbuilt >= sides.received && 2 * (sides.built - sides.both) >= sides.built) {
    return r.fail("other-numbers", true,
                  {"% batches were built and % received, but only % of them have the same number",
                   {count_word{sides.built}, count_word{sides.received}, count_word{sides.both}}},
                  {same_numbers});
  }
  const std::int64_t shift = sides.shift(batches.epochs().size());
  if (shift == 0 || sides.built < enough_batches) return;
  return r.fail(
      "other-numbers", true,
      {"batches are numbered from % where they are built, and from % where they are received",
       {name_word{std::to_string(sides.built_numbers.first)},
        name_word{std::to_string(sides.received_numbers.first)}}},
      {same_numbers});
}

/// Whether a block around the work on a batch ends at once, although the consumer waits long.
void empty_blocks(checked_run& r) {
  if (!r.shows_all_markers()) return;
  const wait_parts& waits = r.waits;
  double sum_ns = 0;
  std::size_t blocks = 0;
  for (const batch_record& one : r.run.batches.records()) {
    if (one.kind != record_kind::preprocessed) continue;
    sum_ns += static_cast<double>(one.duration_ns);
    ++blocks;
  }
  constexpr double nothing_ns = 200;
  constexpr double much_longer = 1000;
  const bool is_empty = blocks >= enough_batches && waits.waits >= enough_batches &&
                        r.run.side.stages.empty() &&
                        sum_ns < nothing_ns * static_cast<double>(blocks);
  const double wait_ns = waits.waits == 0 ? 0 : waits.all_ns / static_cast<double>(waits.waits);
  if (!is_empty || wait_ns * static_cast<double>(blocks) < much_longer * sum_ns) {
    return;
  }
  return r.fail(
      "empty-blocks", true,
      {"the blocks around the work on batches end at once, after % on average",
       {time_word{sum_ns / static_cast<double>(blocks)}}},
      {"put LOTUS_BATCH_PREPROCESSED(i) at the beginning of the block that builds batch i; "
       "an object of lotus::batch_preprocessed needs a name"});
}

/// Whether blocks around the work on batches contain the consumer's waits for them.
void waits_inside(checked_run& r) {
  if (!r.shows_all_markers()) return;
  const run_data& run = r.run;
  std::size_t waits = 0;
  std::size_t inside = 0;
  for (const batch& b : run.batches.all()) {
    const batch_record* const wait = run.batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    ++waits;
    const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
    inside += std::any_of(spans.begin() + b.first_span, spans.begin() + b.first_span + b.spans,
                          [&](const preprocessing_span& s) {
                            return s.stage == preprocess_stage && s.start_ns <= wait->start_ns &&
                                   wait->end_ns() <= s.start_ns + s.duration_ns && s.file &&
                                   run.log(*s.file).number == run.log(wait->file).number;
                          })
                  ? 1
                  : 0;
  }
  if (waits < enough_batches || 2 * inside < waits) return;
  return r.fail(
      "wait-inside", true,
      {"% waits for a batch are inside of the block that builds it", {count_word{inside}}},
      {"put LOTUS_BATCH_PREPROCESSED(i) into the thread that builds batch i, and not "
       "around the consumer's wait"});
}

}  // namespace lotus::tool
