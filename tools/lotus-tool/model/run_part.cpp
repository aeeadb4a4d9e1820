#include "model/run_part.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

/// Returns the batch with the epoch and the number in `wanted`; null if the run has no such batch.
const batch* look_for_batch(const window_end& wanted, const run_batches& batches) {
  for (const batch& b : batches.all()) {
    if (b.index == wanted.batch && b.epoch == wanted.epoch) return &b;
  }
  return nullptr;
}

const batch& find_batch(const window_end& wanted, const run_batches& batches) {
  if (const batch* const found = look_for_batch(wanted, batches)) return *found;
  throw usage_error("there is no batch " + std::to_string(wanted.batch) + " in epoch " +
                    std::to_string(wanted.epoch));
}

/// Returns the interval of a batch's records, including its preprocessing and its step.
time_span span_of(const batch& b, const run_batches& batches) {
  std::optional<time_span> all = batches.made(b);
  for (const optional_record n : {b.preprocessed, b.wait, b.consumed, b.queued}) {
    if (const batch_record* const r = batches.record(n)) {
      const std::optional<time_span> step = batches.step(n);
      const time_span one{r->start_ns, step ? step->end_ns : r->end_ns()};
      if (!all) all = one;
      all->start_ns = std::min(all->start_ns, one.start_ns);
      all->end_ns = std::max(all->end_ns, one.end_ns);
    }
  }
  // `all` has a value, because every batch has a record or was preprocessed.
  return all.value_or(time_span());
}

}  // namespace

bool has_part(const wanted_part& wanted, const run_data& run) {
  const auto has = [&run](const std::optional<window_end>& end) {
    return !end || end->after_ns || look_for_batch(*end, run.batches) != nullptr;
  };
  return has(wanted.from) && has(wanted.to);
}

time_window part_of(const wanted_part& wanted, const run_data& run) {
  time_window part;
  const auto after = [&run](std::int64_t ns) {
    return ns > INT64_MAX - run.first_ns ? INT64_MAX : run.first_ns + ns;
  };
  const auto batch_at = [&run](const window_end& end) {
    return span_of(find_batch(end, run.batches), run.batches);
  };
  if (wanted.last_ns) part.from_ns = run.last_ns - *wanted.last_ns;
  if (const auto& from = wanted.from) {
    const std::int64_t ns = from->after_ns ? after(*from->after_ns) : batch_at(*from).start_ns;
    part.from_ns = std::max(part.from_ns.value_or(ns), ns);
  }
  if (const auto& to = wanted.to) {
    part.to_ns = to->after_ns ? after(*to->after_ns) : batch_at(*to).end_ns;
  }
  if (part.from_ns && part.to_ns && *part.from_ns > *part.to_ns) {
    throw usage_error("--to is before --from");
  }
  return part;
}

}  // namespace lotus::tool
