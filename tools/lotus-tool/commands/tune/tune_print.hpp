// Shows the result of `lotus-tool tune`.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_TUNE_PRINT_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_TUNE_PRINT_HPP

#include <optional>
#include <ostream>
#include <string>

#include "commands/tune/knobs.hpp"
#include "commands/tune/search.hpp"
#include "describe/described.hpp"

namespace lotus::tool {

/// The data that is printed about a search.
struct tune_result {
  const search_space* space = nullptr;
  const search* found = nullptr;
  std::optional<double> target_per_s;
  std::string ended_because;
  std::string dir;  ///< folder with the logs of all runs
};

void print_tune(const tune_result& result, std::ostream& out);
const description<tune_result>& description_of(const tune_result*);

/// Returns a line such as
/// "run 2 of at most 6, workers=4: 99.1 batches/s (98.7 were predicted)".
std::string run_line(const tune_run& run, const search_space& space, std::size_t number,
                     std::size_t of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_TUNE_PRINT_HPP
