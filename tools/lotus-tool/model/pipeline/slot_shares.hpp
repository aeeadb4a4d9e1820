// What the slots of a stage did: busy, starved or blocked.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// A number's way through one stage. Times in ns.
struct passage {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::int64_t> ready_ns;    ///< it came out of the stage before, if there is one
  std::optional<std::int64_t> fetched_ns;  ///< the next stage, or the consumer, got it
  std::uint32_t epoch = 0;
};

/// Shares of the slots' time, 0..1; their sum is 1, or 0 where there was no time.
struct slot_shares {
  double busy = 0;
  std::optional<double> starved = 0.0;  ///< nullopt with the next: the logs do not tell them apart
  std::optional<double> blocked = 0.0;
};

/// Of one stage with threads of its own, in each epoch from its first start to its last end.
///
/// A slot takes what lies ready at once, unless it still holds an item that its output has no room
/// for. So where the item that this stage starts next lies ready and a slot is idle all the same,
/// it is blocked; what then lies in the output less the idle slots is the bound of the output
/// (median over that time), and whatever else lies above that bound is held by blocked slots too: a
/// stage may be blocked while nothing comes in. The rest is starved. A source (most of its numbers
/// come from nowhere) is never starved: idle it is blocked; behind its last start it counts no
/// more. Waking up takes time as well: where less than 0.1 % is idle with something ready, nothing
/// is learnt of the bound but that it is not below what lay in the output beside idle slots. Time
/// that is idle with more than that in the output may be either; half of it counts as blocked,
/// which is at most 2 points from the truth, or if it is above 4 % neither is told.
/// @param passages  in order of start.
slot_shares measure_slots(const std::vector<passage>& passages, std::size_t slots);

/// Of a pool: of the whole pool's idle time. Its idle threads are blocked where something lies
/// ready for one of its stages, or where it has a source; `busy` is that of all stages.
/// @param stages  passages of each, in order of start.
slot_shares measure_pool(const std::vector<std::vector<passage>>& stages, std::size_t threads);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
