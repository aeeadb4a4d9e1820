// Profiles for Python's pstats, and for what reads its files: snakeviz, gprof2dot.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP

#include <string>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "log/operation_names.hpp"
#include "model/calls/call_profile.hpp"

namespace lotus::tool {

/// What pstats.Stats(file) reads: Python's marshal format, which is stable since version 2, of
/// {(file, line, name): (primitive calls, calls, self s, total s, callers)}, where callers are
/// {(file, line, name): (calls, primitive calls, self s, total s)}. Operations that nobody called
/// were called by "<all threads>", so that all have one root; so were, as NAME (aggregated), those
/// that were only counted.
std::string pstats_of(const std::vector<called_operation>& ops, const name_table& names,
                      const std::vector<aggregated_op>& aggregated);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_PSTATS_HPP
