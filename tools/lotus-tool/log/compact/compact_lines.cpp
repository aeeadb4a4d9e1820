#include "log/compact/compact_lines.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "log/compact/compact_block.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/format/line.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::event_kind;

constexpr std::size_t buffer_bytes = 4 * lotus::detail::max_append_bytes;

record_kind kind_of_line(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::batch_preprocessed:
      return record_kind::preprocessed;
    case event_kind::batch_wait:
    case event_kind::batch_arrived:
      return record_kind::wait;
    case event_kind::batch_consumed:
      return record_kind::consumed;
    case event_kind::batch_queued:
      return record_kind::queued;
    default:
      return record_kind::op;
  }
}

bool heap_line_of(const compact_record& record, side_line& line) noexcept {
  constexpr side_kind kinds[] = {side_kind::allocated, side_kind::freed, side_kind::retained,
                                 side_kind::peak,      side_kind::heap,  side_kind::held,
                                 side_kind::total};
  const auto first = static_cast<std::size_t>(event_kind::allocated);
  line.kind = kinds[static_cast<std::size_t>(record.kind) - first];
  line.a = static_cast<std::int64_t>(record.second);
  line.b = static_cast<std::int64_t>(record.number);
  return record.second <= INT64_MAX;
}

}  // namespace

compact_reader::compact_reader(const log_file& file) : stored_(file), buffer_(buffer_bytes) {}

bool compact_reader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t n = stored_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += n;
  return n > 0;
}

std::string_view compact_reader::next(lotus::detail::compact_block_header& header) {
  skipped_ = false;
  while (true) {
    const std::string_view left(buffer_.data() + begin_, end_ - begin_);
    const std::size_t bytes = find_block(left, header);
    if (bytes == std::numeric_limits<std::size_t>::max()) {
      if (fill()) continue;
      // A block that was cut off, with others behind it where a part ended with it.
      if (left.empty()) return {};
      skipped_ = true;
    } else if (bytes > 0) {
      begin_ += bytes;
      ++blocks_;
      return left.substr(0, bytes);
    }
    skipped_ = true;
    const std::string_view magic(lotus::detail::compact_block_magic,
                                 sizeof(lotus::detail::compact_block_magic));
    const std::string_view behind(buffer_.data() + begin_ + 1, end_ - begin_ - 1);
    const std::size_t at = behind.find(magic);
    if (at != std::string_view::npos) {
      begin_ += 1 + at;
      continue;
    }
    // The first bytes of one may stand at the end.
    begin_ = behind.size() < magic.size() ? end_ : end_ - (magic.size() - 1);
    if (!fill()) {
      begin_ = end_;
      return {};
    }
  }
}

bool compact_lines::line_of_batch(const compact_record& record, log_line& line) {
  const lotus::detail::record_kind& row = lotus::detail::kind_of({record.kind, 0});
  const bool main = row.role == lotus::detail::log_role::main;
  const bool worker = row.role == lotus::detail::log_role::worker;
  if (role_ == file_role::main ? !main : !worker) return false;
  line.name = record.name;
  line.start_ns = record.start_ns;
  line.duration_ns = record.duration_ns;
  line.kind = kind_of_line(record.kind);
  line.batch = -1;
  if (line.kind == record_kind::op) return true;
  line.batch = static_cast<std::int64_t>(record.number);
  batch_name_.assign(row.prefix).append(std::to_string(record.number));
  line.name = batch_name_;
  return record.number <= INT64_MAX;
}

bool compact_lines::line_of(const compact_record& record, side_line& line) noexcept {
  constexpr std::uint64_t most = INT64_MAX;
  line.name = record.name;
  line.time_ns = record.start_ns;
  line.a = record.duration_ns;
  line.b = static_cast<std::int64_t>(record.number);
  switch (record.kind) {
    case event_kind::stage:
    case event_kind::range:
    case event_kind::aggregated:
      line.kind = record.kind == event_kind::stage   ? side_kind::stage
                  : record.kind == event_kind::range ? side_kind::range
                                                     : side_kind::aggregated;
      if (record.number == lotus::detail::large_stage_number) line.b = -1;
      return true;
    case event_kind::async_piece:
      line.kind = side_kind::piece;
      return true;
    case event_kind::counter:
    case event_kind::stage_number:
      line.kind = record.kind == event_kind::counter ? side_kind::counter : side_kind::stage_number;
      line.a = static_cast<std::int64_t>(record.number);
      line.b = 0;
      return true;
    case event_kind::batch_takes:
      line.kind = side_kind::takes;
      line.a = static_cast<std::int64_t>(record.number);
      line.b = static_cast<std::int64_t>(record.second);
      return record.number <= most && record.second <= most;
    case event_kind::off_cpu:
      line.kind = side_kind::off_cpu;
      line.a = static_cast<std::int64_t>(record.number);
      line.b = static_cast<std::int64_t>(record.second) - 1;
      return record.number <= most && record.second <= most;
    case event_kind::arguments:
      line.kind = side_kind::arguments;
      line.a = line.b = 0;
      return true;
    default:
      return lotus::detail::counts_heap(record.kind) && heap_line_of(record, line);
  }
}

}  // namespace lotus::tool
