// Finds the calls in which threads waited.
#ifndef LOTUS_TOOL_WAITS_STACKS_NAME_STACKS_HPP
#define LOTUS_TOOL_WAITS_STACKS_NAME_STACKS_HPP

#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// Sets blocked_on::calls and blocked_on::held_in of all entries for which the process recorded
/// stacks. Reads the programs and libraries that the process had mapped. Throws input_error.
void name_stacks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics);

/// Returns a text such as "std::mutex::lock, called by Decoder::get, called by main".
std::string calls_text(const std::vector<std::string>& calls);

/// Returns a text such as "Decode waits for a lock in std::mutex::lock, called by Decoder::get,
/// called by main"; "" if the calls are unknown. Call name_stacks() before.
/// @param name  name of the operation that waits, without the S that logs put before it.
/// @param of  the wait to describe; null: the most frequent wait of the operation.
std::string calls_of_wait(const run_blocked_on& joined, const std::string& name,
                          const blocked_on* of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_STACKS_NAME_STACKS_HPP
