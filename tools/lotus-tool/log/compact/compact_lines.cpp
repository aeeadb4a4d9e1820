#include "log/compact/compact_lines.hpp"

#include <cstdint>

#include "log/batch_kinds.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool {

bool compact_lines::line_of_batch(const compact_record& record, log_line& line) {
  const lotus::detail::record_kind& row = lotus::detail::kind_of(record.kind);
  const bool main = row.role == lotus::detail::log_role::main;
  const bool worker = row.role == lotus::detail::log_role::worker;
  if (role_ == file_role::main ? !main : !worker) return false;
  line.name = record.name;
  line.start_ns = record.start_ns;
  line.duration_ns = record.duration_ns;
  line.kind = kind_of_line(record.kind);
  line.batch = -1;
  if (line.kind == record_kind::op) return true;
  const std::uint64_t batch = record.numbers[0];
  line.batch = static_cast<std::int64_t>(batch);
  batch_name_.assign(row.prefix).append(std::to_string(batch));
  line.name = batch_name_;
  return batch <= INT64_MAX;
}

bool compact_lines::line_of(const compact_record& record, side_line& line) noexcept {
  const lotus::detail::record_kind& row = lotus::detail::kind_of(record.kind);
  if (row.side_begin.empty()) return false;
  line.kind = record.kind;
  line.name = record.name;
  line.time_ns = record.start_ns;
  line.columns[0] = row.lasts() ? record.duration_ns : 0;
  line.columns[1] = 0;
  const std::uint64_t* number = record.numbers;
  for (const lotus::detail::record_field& field : row.fields) {
    if (field.quantity == lotus::detail::record_quantity::none) break;
    std::int64_t& column = line.columns[field.column == lotus::detail::line_column::a ? 0 : 1];
    column = static_cast<std::int64_t>(*number);
    switch (field.type) {
      case lotus::detail::field_type::natural_or_none:
        if (*number == lotus::detail::missing_number(field)) column = side_line::no_number;
        break;
      case lotus::detail::field_type::natural:
        if (*number > INT64_MAX) return false;
        break;
      case lotus::detail::field_type::integer:
      case lotus::detail::field_type::bits:
        break;
    }
    ++number;
  }
  return true;
}

}  // namespace lotus::tool
