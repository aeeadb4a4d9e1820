// Detects runs in which the batches of several loaders were recorded as batches of one loader.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_NUMBER_SEQUENCES_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_NUMBER_SEQUENCES_HPP

#include <string>

#include "findings/checks/recorded_work.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Returns the evidence that the batches of a run belong to several loaders; "" if there is none.
/// The consumer of one loader receives all numbers once in every epoch; an epoch begins when a
/// number repeats. Therefore there must be several loaders in each of these cases:
/// - Two threads of one process wait for batches at the same time.
/// - An epoch lacks numbers at its beginning or in its middle.
/// - A complete but shorter epoch occurs among longer ones.
/// An epoch that was left early is recognized by batches that were built for it and never received.
std::string mixed_sequences(const run_data& run, const recorded_work& work);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_NUMBER_SEQUENCES_HPP
