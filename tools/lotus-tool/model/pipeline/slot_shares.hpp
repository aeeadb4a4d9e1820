// Measures what the slots of a stage did: whether they were busy, starved or blocked.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// The passage of a number through one stage. Times in ns.
struct passage {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::int64_t> ready_ns;  ///< when it came out of the stage before, if there is one
  std::optional<std::int64_t> fetched_ns;  ///< when the next stage, or the consumer, fetched it
  std::uint32_t epoch = 0;
};

/// Shares of the slots' time, 0..1; their sum is 1, or 0 if there was no time.
struct slot_shares {
  double busy = 0;
  /// nullopt, like blocked, if the logs do not distinguish them.
  std::optional<double> starved = 0.0;
  std::optional<double> blocked = 0.0;
};

/// Measures one stage with threads of its own, in each epoch from its first start to its last end.
///
/// A slot takes what is ready at once, unless it still holds an item for which its output has no
/// room. So if the item that this stage starts next is ready and a slot is idle nevertheless, the
/// slot is blocked. The number of items in the output at such times, minus the idle slots, is the
/// bound of the output (median over that time), and all items above that bound are held by blocked
/// slots too: a stage may be blocked while nothing comes in. Other idle slots are starved. A source
/// (most of its numbers come from nowhere) is never starved: idle slots are blocked, and do not
/// count after its last start. Waking up also takes time: if slots are idle with something ready
/// for less than 0.1 % of the time, it only follows that the bound is not below the number of items
/// in the output next to idle slots. Idle time with more items than that in the output may be
/// either; half of it counts as blocked, which is wrong by at most 2 percentage points; if this
/// time is above 4 %, both shares are missing.
/// @param passages  in order of start.
slot_shares measure_slots(const std::vector<passage>& passages, std::size_t slots);

/// Measures a pool: its idle threads are blocked if something is ready for one of its stages, or if
/// it contains a source; `busy` covers all stages.
/// @param stages  the passages of each stage, in order of start.
slot_shares measure_pool(const std::vector<std::vector<passage>>& stages, std::size_t threads);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
