// Whether one loader's numbers tell of several.
#ifndef LOTUS_TOOL_VERDICT_NUMBER_SEQUENCES_HPP
#define LOTUS_TOOL_VERDICT_NUMBER_SEQUENCES_HPP

#include <string>

#include "model/run_data.hpp"
#include "verdict/recorded_work.hpp"

namespace lotus::tool {

/// Says by what the batches of a run are seen to be those of several loaders; "" where they are
/// not.
///
/// One loader's hand-overs count through its numbers, epoch by epoch. They cannot be one's where
/// two threads of one process wait for batches at the same time; where an epoch (which begins when
/// a number comes again) lacks the numbers that it should begin with, or a part in its middle; or
/// where a whole shorter epoch stands among longer ones. Shorter epochs that were left early are
/// known by the batches that were made for them and handed over to nobody.
std::string mixed_sequences(const run_data& run, const recorded_work& work);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_NUMBER_SEQUENCES_HPP
