// Finds the cheapest way to reach a given throughput.
#ifndef LOTUS_TOOL_REPLAY_TARGET_HPP
#define LOTUS_TOOL_REPLAY_TARGET_HPP

#include <optional>
#include <string>

#include "replay/change.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

/// The settings that reach a throughput, or what would have to become faster to reach it.
struct way_to_target {
  double target_per_s = 0;
  /// Workers and prefetch with which the throughput is within 2 % of the target; nullopt if none
  /// suffice.
  std::optional<pipeline_change> settings;
  std::string work;   ///< that would have to become faster, if `settings` is missing
  double faster = 0;  ///< by this factor, with `best_settings`; 0: no speed-up is enough
  pipeline_change best_settings;
};

/// The throughput of the consumer if batches were always ready.
double consumer_rate(const what_if& run);

/// Finds the fewest workers, then the lowest prefetch, within 2 % of the target: predictions are
/// not more accurate than that, and the last percent may take four times the workers.
/// Searches up to four workers per CPU, at least 16, and prefetch 1, 2, 4 and 8 per worker.
way_to_target find_way(const what_if& run, const name_table& names, double target_per_s);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_TARGET_HPP
