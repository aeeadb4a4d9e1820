// Finds the cheapest settings that reach a given throughput.
#ifndef LOTUS_TOOL_REPLAY_TARGET_HPP
#define LOTUS_TOOL_REPLAY_TARGET_HPP

#include <functional>
#include <optional>
#include <string>

#include "replay/change.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {

/// The settings that reach a throughput, or the work that would have to become faster to reach it.
struct path_to_target {
  double target_per_s = 0;
  /// The cheapest settings with which the throughput reaches at least 98 % of the target; nullopt
  /// if no settings suffice.
  std::optional<pipeline_change> settings;
  std::string work;  ///< if `settings` is missing: operation or stage that must become faster
  /// Factor by which `work` must become faster, together with `best_settings`; 0: no factor
  /// suffices.
  double faster = 0;
  pipeline_change best_settings;
};

/// Returns the throughput that the consumer would reach if every batch were ready in time.
double consumer_rate(const what_if& run);

/// Finds the smallest number of workers that reaches 98 % of the target and, for this number, the
/// smallest number of batches in flight per worker (1, 2, 4 or 8). 98 % is enough because
/// predictions are not more accurate, and the last percent may need four times the workers. Tries
/// up to four workers per CPU, or 16 if this is more. Settings with which the whole run would take
/// longer are no way to the target. If a run has several stages with their own threads, adds
/// threads to these stages instead.
/// @param forbidden  whether the recording shows that a change cannot help.
path_to_target find_path_to_target(const what_if& run, const name_table& names, double target_per_s,
                                   const std::function<bool(const pipeline_change&)>& forbidden);

/// Returns the fewest threads that are as fast as those of the run, or faster: of workers, or of
/// the stage whose threads wait for recorded_pipeline::lock. nullopt if the run has no more than it
/// needs. The threads that are left out only wait, for example for a lock.
std::optional<pipeline_change> fewest_threads(const what_if& run, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_TARGET_HPP
