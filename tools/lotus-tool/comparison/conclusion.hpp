// What a comparison means, in words.
#ifndef LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
#define LOTUS_TOOL_COMPARISON_CONCLUSION_HPP

#include <string>
#include <vector>

#include "comparison/comparison.hpp"
#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// As people read it: "Crop", "Token (aggregated)", "preprocess".
std::string title_of(const compared_times& row);

/// What besides the program differs, for this loader.
std::vector<std::string> unlike_of(const compared_loader& loader, const comparison& found);

/// "preprocessing of a batch became 1.23 ± 0.04 times slower, because ..."
std::string conclusion_of(const compared_loader& loader);
/// "throughput: 12.1 -> 9.8 batches/s"; "" where a side has none.
std::string throughput_of(const compared_loader& loader);

/// Changes as people read them: "+12.30 %", and from twice as much on "837x".
std::string change_text(double grown_by);
std::string interval_text(const change& likely);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_CONCLUSION_HPP
