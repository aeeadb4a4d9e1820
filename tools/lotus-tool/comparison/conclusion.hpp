// Describes in words what a comparison means.
#ifndef LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
#define LOTUS_TOOL_COMPARISON_CONCLUSION_HPP

#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// The name that the output shows: "Crop", "Token (aggregated)", "preprocess".
std::string title_of(const compared_times& row);

/// Differences between the two sides, other than the program, that affect this loader.
std::vector<std::string> unlike_of(const compared_loader& loader, const comparison& found);

/// "preprocessing of a batch became 1.23 ± 0.04 times slower, because ..."
std::string conclusion_of(const compared_loader& loader);
/// "throughput: 12.1 -> 9.8 batches/s"; "" if a side has none.
std::string throughput_of(const compared_loader& loader);

/// Formats a change: "+12.30 %", and large increases as a factor: "837x".
std::string change_text(double grown_by);
std::string interval_text(const change& likely);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
