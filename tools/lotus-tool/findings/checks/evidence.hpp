// What the checks look for in a run.
#pragma once

#include <cstddef>
#include <optional>

#include "findings/checks/recorded_work.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

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
phrase mixed_sequences(const run_data& run, const recorded_work& work);

}  // namespace lotus::tool
