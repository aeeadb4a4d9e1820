// The cheapest way to a rate.
#ifndef LOTUS_TOOL_REPLAY_TARGET_HPP
#define LOTUS_TOOL_REPLAY_TARGET_HPP

#include <optional>
#include <string>

#include "replay/change.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

/// What reaches a rate, or what would have to become faster for it.
struct way_to_target {
  double target_per_s = 0;
  /// Workers and prefetch that come within 2 % of it; none: they do not suffice.
  std::optional<pipeline_change> settings;
  std::string work;   ///< that would have to become faster, where they don't
  double faster = 0;  ///< so many times, with `best_settings`; 0: not even then
  pipeline_change best_settings;
};

/// What the consumer alone would take, were batches always there.
double consumer_rate(const what_if& run);

/// The fewest workers, then the least that is out at once, of those within 2 % of the target: a
/// prediction is not better than that, and the last percent may take four times the workers.
/// Searches up to four workers a CPU, at least 16, and prefetch of 1, 2, 4 and 8 a worker.
way_to_target find_way(const what_if& run, const name_table& names, double target_per_s);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_TARGET_HPP
