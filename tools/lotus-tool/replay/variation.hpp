// Estimates how much a run varies by chance.
#ifndef LOTUS_TOOL_REPLAY_VARIATION_HPP
#define LOTUS_TOOL_REPLAY_VARIATION_HPP

#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// Returns the relative standard error of the mean interval between batches. To estimate it,
/// divides each epoch into ten parts and compares these parts.
double run_sd_of(const run_data& run);

/// Returns the relative standard error of the mean work on a batch or item.
double error_of_mean(const recorded_pipeline& p);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_VARIATION_HPP
