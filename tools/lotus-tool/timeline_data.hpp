// A run as the report's timeline draws it.
#ifndef LOTUS_TOOL_TIMELINE_DATA_HPP
#define LOTUS_TOOL_TIMELINE_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "log_files.hpp"
#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {

/// Operations beyond this many are not drawn: a browser could not hold them. About 6 bytes each.
inline constexpr std::uint64_t most_drawn_operations = 3'000'000;

/// {"span_ns":…,"note":…,"tracks":[{"name":…,"batches":[[start,duration,kind,index],…],
/// "slices":base64},…],"arrows":[[from,track,to,track],…]}; times in ns after `first_ns`. kind: 0
/// preprocessed, 1 wait, 2 step, 3 out-of-order arrival. slices: for every operation, in order
/// of start, its start less the start before (zigzag), its duration and its name, as LEB128.
/// Reads the logs. Throws input_error.
std::string timeline_json(const run_files& run, const run_batches& batches,
                          std::uint64_t operations, std::int64_t first_ns, std::int64_t last_ns,
                          name_table& names);

std::string base64(std::string_view bytes);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_TIMELINE_DATA_HPP
