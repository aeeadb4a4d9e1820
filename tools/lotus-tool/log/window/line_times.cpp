#include "log/window/line_times.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include "log/log_line.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {

std::optional<line_times> times_of_line(std::string_view line, bool beside) {
  if (!beside) {
    log_line record;
    if (parse_line(line, record) != nullptr) return std::nullopt;
    return line_times{record.start_ns, record.end_ns()};
  }
  side_line record;
  if (parse_line(line, record) != nullptr) return std::nullopt;
  const bool lasts = record.kind == side_kind::stage || record.kind == side_kind::piece ||
                     record.kind == side_kind::range;
  const bool begins = record.kind == side_kind::stage_number ||
                      record.kind == side_kind::arguments || tells_of_operation(record.kind);
  const bool off_cpu = record.kind == side_kind::off_cpu;
  return line_times{record.time_ns, record.time_ns + (lasts ? record.a : 0), !begins, !off_cpu};
}

}  // namespace lotus::tool
