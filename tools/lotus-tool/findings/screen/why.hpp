// Says why a run has its verdict: the evidence, what else the recording shows, and what the
// diagnosis could not look at.
#ifndef LOTUS_TOOL_FINDINGS_SCREEN_WHY_HPP
#define LOTUS_TOOL_FINDINGS_SCREEN_WHY_HPP

#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

/// Returns the evidence for the verdict, and what else the recording shows; without a verdict, only
/// the latter.
phrase why_and_findings(const diagnosis& d);

/// Returns why a run is called limited by its accelerator, although the host looks limited too.
phrase busy_why(const diagnosis& d);

/// Returns whether the threads are blocked for more than half of the critical path. In this case,
/// the predictions depend on the assumption that a thread gets a CPU as soon as its wait ends.
bool mostly_blocked(const diagnosis& d);

/// Returns what the diagnosis knows nothing about although it may limit the run, and why.
std::vector<phrase> not_looked_at(const diagnosis& d);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_SCREEN_WHY_HPP
