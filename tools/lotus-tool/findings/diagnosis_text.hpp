// Formats rates and other parts of a diagnosis as text.
#ifndef LOTUS_TOOL_FINDINGS_DIAGNOSIS_TEXT_HPP
#define LOTUS_TOOL_FINDINGS_DIAGNOSIS_TEXT_HPP

#include <optional>
#include <string>

#include "base/terminal/table.hpp"
#include "findings/diagnosis.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

/// Returns a rate such as "12.4 batches/s".
std::string rate(std::optional<double> per_second);

/// Returns a range such as "9.1 to 13.2 batches/s" if `interval` is set, otherwise the rate.
std::string rate(std::optional<double> per_second, const std::optional<rate_interval>& interval);

/// Returns the reason for the verdict stage_bound, without a final period: how much the threads of
/// the stage can process or how busy they are, and which part of the pipeline would be the next
/// bottleneck.
std::string stage_evidence(const diagnosis& d);

/// Explains why making one part of the pipeline faster gains less than the part's own speedup:
/// names the part that limits the run after the change, and its throughput. Returns "" if no other
/// part would limit the run.
/// @param of_several  whether `m` is the first of several suggestions.
std::string next_limit_text(const diagnosis& d, const suggestion& m, bool of_several);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_DIAGNOSIS_TEXT_HPP
