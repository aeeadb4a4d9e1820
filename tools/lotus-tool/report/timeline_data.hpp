// A run as the report's timeline draws it.
#ifndef LOTUS_TOOL_REPORT_TIMELINE_DATA_HPP
#define LOTUS_TOOL_REPORT_TIMELINE_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Operations beyond this many are not drawn: a browser could not hold them. About 6 bytes each.
inline constexpr std::uint64_t most_drawn_operations = 3'000'000;

/// Values of counters, asynchronous operations or stretches off the CPU beyond this many are not
/// drawn. About 20 bytes each.
inline constexpr std::size_t most_drawn_values = 500'000;

/// Writes {"span_ns":…,"note":…,"tracks":[{"name":…,"batches":[[start,duration,kind,index],…],
/// "off_cpu":[[start,duration,reason],…],"slices":base64},…],
/// "async":[{"name":…,"lives":[[start,duration],…]},…],"counters":[{"name":…,"values":[[time,value],…]},…],
/// "arrows":[[from,track,to,track],…]}; times in ns after `first_ns`. kind: 0 preprocessed, 1 wait,
/// 2 step, 3 out-of-order arrival. counters: one for each process that has it. slices: for every
/// operation, in order of start, its start less the start before (zigzag), its duration and its
/// name, as LEB128.
/// @param text   that `json` appends to.
/// @param run    read with run_parts::operations and totals.
/// @param names  of all runs' operations, to which those of this one are added.
void write_timeline(json_writer& json, std::string& text, const run_data& run, name_table& names);

/// RFC 4648, section 4, appended.
void append_base64(std::string& to, std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPORT_TIMELINE_DATA_HPP
