#include "log/window/line_times.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include "log/log_line.hpp"
#include "log/side_line.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

std::optional<line_times> times_of_line(std::string_view line, bool is_side) {
  if (!is_side) {
    log_line record;
    if (parse_line(line, record) != nullptr) return std::nullopt;
    return line_times{record.start_ns, record.end_ns()};
  }
  side_line record;
  if (parse_line(line, record) != nullptr) return std::nullopt;
  const bool begins =
      lotus::detail::kind_of(record.kind).drawing == lotus::detail::record_drawing::ahead;
  return line_times{record.time_ns, record.end_ns(), !begins, record.kind != event_kind::off_cpu};
}

}  // namespace lotus::tool
