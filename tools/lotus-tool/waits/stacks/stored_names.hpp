// Stores the names of functions and variables in what the processes of a run recorded.
#ifndef LOTUS_TOOL_WAITS_STACKS_STORED_NAMES_HPP
#define LOTUS_TOOL_WAITS_STACKS_STORED_NAMES_HPP

#include <string>

namespace lotus::tool {

/// Looks up the functions in the recorded stacks of a run, and the variables for which its threads
/// waited, and appends their names to the run's files. Then a program that is rebuilt, moved or
/// removed later changes nothing. What fails is left to the commands that read the run.
void store_names(const std::string& dir, const std::string& prefix);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_STACKS_STORED_NAMES_HPP
