// Measures how the slots of a stage spent their time: busy, starved or blocked. A stage has one
// slot for each item that it can process at the same time; usually a slot is one of its threads.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// The passage of one item or batch through one stage. Times in ns.
struct passage {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// Time when the item left the previous stage; nullopt if there is no previous stage.
  std::optional<std::int64_t> ready_ns;
  /// Time when the next stage or the consumer fetched the item; nullopt if neither did.
  std::optional<std::int64_t> fetched_ns;
  std::uint32_t epoch = 0;
};

/// Shares of the slots' time, 0..1. The sum of the shares is 1, or 0 if the stage never worked.
struct slot_shares {
  double busy = 0;
  /// Shares of the time in which slots waited for input (starved) or for room in the output
  /// (blocked). Missing if the logs do not show which of the two they waited for.
  std::optional<double> starved = 0.0;
  std::optional<double> blocked = 0.0;
};

/// Measures one stage that has its own threads, in each epoch from its first start to its last end.
///
/// A slot is starved if it waits for input. It is blocked if it holds a finished item because the
/// queue after the stage (the output) is full. The logs do not show this, so it is derived:
/// - While an item is ready, an idle slot is blocked, because otherwise it would start this item.
/// - At such times the output is full. It then holds as many items as are finished, minus those in
///   idle slots. The median of this number is the bound of the output.
/// - At other times, the finished items above the bound are in blocked slots; other idle slots are
///   starved.
/// - A source (a stage without a previous stage, for most items) is never starved: its idle slots
///   are blocked, and do not count after its last start.
/// - Slots that are idle while an item is ready may also just be waking up. If this occurs for less
///   than 0.1 % of the time, the bound is therefore unknown; only a lower bound is known from the
///   number of items that the output held. Then half of the time of idle slots above this lower
///   bound counts as blocked, and half as starved. If this time exceeds 4 %, both shares are
///   missing.
/// @param passages  sorted by start.
slot_shares measure_slots(const std::vector<passage>& passages, std::size_t slots);

/// Measures a pool of threads that several stages share. Idle threads are blocked if an item is
/// ready for any stage of the pool, or if any of the stages is a source. `busy` covers all stages.
/// @param stages  the passages of each stage, sorted by start.
slot_shares measure_pool(const std::vector<std::vector<passage>>& stages, std::size_t threads);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SLOT_SHARES_HPP
