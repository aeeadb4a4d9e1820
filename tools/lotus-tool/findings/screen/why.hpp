// Says why a run has its verdict: the evidence, and what else the recording shows.
#pragma once

#include <string>

#include "findings/diagnosis.hpp"

namespace lotus::tool {

/// Returns the evidence for the verdict, and what else the recording shows; without a verdict, only
/// the latter.
std::string why_and_findings(const diagnosis& d);

/// Returns why a run is called limited by its accelerator, although the host looks limited too.
std::string busy_why(const diagnosis& d);

}  // namespace lotus::tool
