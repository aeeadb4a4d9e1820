// Writes profiles for Python's pstats and the tools that read its files, snakeviz and gprof2dot.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP

#include <string>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "log/operation_names.hpp"
#include "model/calls/call_profile.hpp"

namespace lotus::tool {

/// Returns a profile that pstats.Stats(file) can read: a dictionary {(file, line, name): (primitive
/// calls, calls, self s, total s, callers)} in Python's marshal format, which is stable since
/// version 2. Callers are {(file, line, name): (calls, primitive calls, self s, total s)}.
/// Operations without a caller get the caller "<all threads>", so that there is one root.
/// Aggregated operations also get this caller and are named NAME (aggregated).
std::string pstats_of(const std::vector<called_operation>& ops, const name_table& names,
                      const std::vector<aggregated_op>& aggregated);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP
