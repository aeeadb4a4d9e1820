// Writes basic facts about a run, and how complete its records are.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_RUN_FACTS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_RUN_FACTS_HPP

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes the members "facts":{"started":…,"length_ns":…,"hosts":[…],"ranks":…,"processes":…,
/// "threads":…,"cpus":…} and "quality":{"malformed":…,"written":…,"dropped":…,"recovered":…,
/// "aggregated":…}. Members that the logs do not contain are missing.
void write_facts(json_writer& json, const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_RUN_FACTS_HPP
