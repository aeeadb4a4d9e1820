// Recognizes calls that something outside of the program serves one after another.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_STEADY_ENDS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_STEADY_ENDS_HPP

#include <optional>
#include <string_view>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Returns how many calls of an operation end per second, if they end at steady intervals however
/// many of them overlap; nullopt otherwise. Some calls must take hardly longer than an interval,
/// because calls of threads that work in turn, but independently, are longer than the intervals
/// between their ends.
std::optional<double> steady_ends_per_s(const run_data& run, std::string_view operation);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_STEADY_ENDS_HPP
