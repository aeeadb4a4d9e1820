// The run that is checked, what the checks look for in it, and the checks.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_CHECKED_RUN_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_CHECKED_RUN_HPP

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "findings/checks/check.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A run with fewer batches is short.
inline constexpr std::size_t few_batches = 20;
/// Fewer batches do not show how markers are used: a few at the ends of a run may lack records.
inline constexpr std::size_t enough_batches = 8;

struct checked_run {
  checked_run(const run_data& the_run, const recorded_work& the_work)
      : run(the_run),
        work(the_work),
        waits(divide_waits(run, std::vector<bool>(run.batches.all().size(), true))) {}

  void fail(std::string_view id, bool unsafe, phrase text, phrase to_do) {
    failed.push_back({id, std::move(text), std::move(to_do), unsafe});
  }
  bool has(std::string_view id) const {
    return std::any_of(failed.begin(), failed.end(), [&](const check& c) { return c.id == id; });
  }

  const run_data& run;
  const recorded_work& work;
  wait_parts waits;
  std::vector<check> failed{};
  bool lacks_markers = false;  ///< set by missing_markers
  /// Returns whether the program has all markers, and the run was recorded and read as a whole.
  bool shows_all_markers() const {
    const bool is_part =
        run.files->is_part() || run.records.whole_from_ns != 0 || run.records.dropped > 0;
    return !lacks_markers && !is_part && !run.batches.pushed();
  }
};

/// A check adds to checked_run::failed what it finds.
using check_rule = void(checked_run& r);

check_rule missing_markers, other_numbers, empty_blocks, waits_inside;
check_rule items_as_batches, late_waits, negative_delay, loaders_mixed, segments, consumed_late;
check_rule short_run, unrecorded_work, twice, overlap, oversubscribed;
check_rule names_with_numbers, dropped, clock_set;

/// How many threads were busy at the same time.
struct busy_threads {
  std::size_t most = 0;
  double cpus = 0;  ///< number of usable CPUs; 0 if unknown
  /// Share (0..1) of the time in which more threads than CPUs were busy. Time in which no thread
  /// was busy is left out.
  double over_share = 0;
  /// Share (0..1) of the work on batches, steps and operations during which the thread waited for a
  /// CPU; nullopt if this was not recorded.
  std::optional<double> queued_share;
  /// Share (0..1) of the same work during which the thread was blocked, for example because it
  /// slept or waited for a lock; nullopt if this was not recorded.
  std::optional<double> blocked_share;
};

/// Counts busy threads. A thread is busy while it preprocesses a batch or runs a stage or
/// operation; the consumer is also busy during a step. Time in which a thread was blocked is left
/// out if it was recorded. If it was not recorded for the consumer, the steps are left out, because
/// the consumer may spend most of a step waiting for a GPU.
/// @param run  a run that was read with run_parts::operations.
busy_threads count_busy_threads(const run_data& run);

/// Returns the evidence that the batches of a run belong to several loaders; empty if there is
/// none. The consumer of one loader receives all numbers once in every epoch; an epoch begins when
/// a number repeats. Therefore there must be several loaders in each of these cases:
/// - Two threads of one process wait for batches at the same time.
/// - An epoch lacks numbers at its beginning or in its middle.
/// - A complete but shorter epoch occurs among longer ones.
/// An epoch that was left early is recognized by batches that were built for it and never received.
/// The end of an epoch and the beginning of the next may overlap, because workers build ahead.
phrase mixed_sequences(const run_data& run, const recorded_work& work);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_CHECKED_RUN_HPP
