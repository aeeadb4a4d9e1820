// Formats the analyses of the traces of one or several ranks, as text.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP

#include <ostream>
#include <string>
#include <vector>

#include "accelerator/accelerator_words.hpp"
#include "accelerator/analysis.hpp"

namespace lotus::tool {

/// Returns the verdict as one sentence. If there are several ranks, this is the verdict of the
/// slowest rank or, if no rank is much slower, of the rank whose device is idle longest.
/// @param ranks  at least one; this applies to the functions below too.
std::string accelerator_headline(const std::vector<accelerator_analysis>& ranks);

/// Returns what the user should change; "" if the accelerators are busy.
std::string accelerator_advice(const std::vector<accelerator_analysis>& ranks);

/// Returns only the rank with this name or number. Throws usage_error if there is none.
std::vector<accelerator_analysis> only_rank(std::vector<accelerator_analysis> ranks,
                                            const std::string& wanted);

/// Prints all results of one trace, or a table of several ranks.
/// @param all      whether to print all rows of tables.
/// @param command  the arguments of the command, each after a space, for what to run next.
void print_accelerator(const std::vector<accelerator_analysis>& ranks, bool all,
                       const std::string& command, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
