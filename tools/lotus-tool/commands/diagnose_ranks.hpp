// lotus-tool diagnose --ranks: the exposed preparation time of a training on several ranks.
#ifndef LOTUS_TOOL_COMMANDS_DIAGNOSE_RANKS_HPP
#define LOTUS_TOOL_COMMANDS_DIAGNOSE_RANKS_HPP

#include <ostream>
#include <vector>

#include "base/diagnostics.hpp"
#include "commands/diagnose.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Prints how long the ranks' steps wait for batches, and which rank causes it. Throws input_error.
void diagnose_ranks(const std::vector<run_files>& runs, const diagnose_options& options,
                    std::ostream& out, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_DIAGNOSE_RANKS_HPP
