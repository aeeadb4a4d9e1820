// Formats the analysis of one accelerator trace as text.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP

#include <ostream>

#include "accelerator/accelerator_words.hpp"
#include "accelerator/analysis.hpp"

namespace lotus::tool {

/// Prints the headline, the advice and all tables.
/// @param all  whether to print all streams, steps and batches.
void print_accelerator(const accelerator_analysis& of, bool all, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
