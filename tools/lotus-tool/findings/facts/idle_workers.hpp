// How many of the workers built batches while the consumer had none.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_IDLE_WORKERS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_IDLE_WORKERS_HPP

#include <cstddef>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Figures of the time in which the consumer waited and no batch was ready, without its waits for
/// the first batches of epochs.
struct idle_workers {
  double starved_ns = 0;    ///< this time
  std::size_t workers = 0;  ///< the maximum number of threads that built batches and lived at once
  double building = 0;      ///< the mean number of them that built a batch
  /// How often a worker began a batch after it had done nothing for longer than a quarter of a
  /// batch's time.
  std::size_t begins = 0;
  /// How many of these begins came directly after the consumer had received a batch or ended its
  /// step, as they do if the number of batches in flight is limited.
  std::size_t after_reception = 0;
  /// After how many of the begins the same number of batches was in flight, as under a limit.
  std::size_t at_limit = 0;

  /// Returns the share (0..1) of such begins among all.
  double share_after_reception() const noexcept {
    return begins == 0 ? 0 : static_cast<double>(after_reception) / static_cast<double>(begins);
  }
  /// How many of the workers built no batch in the last 40 % of the run, although all began early.
  std::size_t ended = 0;
  double ended_at = 0;  ///< share (0..1) of the run after which these had built their last batch
  /// How long the consumer waited until a thread that had built no batch before began its first
  /// one, while no other was building; how often; and how many threads began a first batch later
  /// than the consumer received one.
  double starting_ns = 0;
  std::size_t starts = 0;
  std::size_t started = 0;
};

idle_workers find_idle_workers(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_IDLE_WORKERS_HPP
