// Converts the records of one role (main, worker or side log) in a compact log to the lines of a
// text log.
#ifndef LOTUS_TOOL_LOG_COMPACT_COMPACT_LINES_HPP
#define LOTUS_TOOL_LOG_COMPACT_COMPACT_LINES_HPP

#include <string>
#include <string_view>
#include <type_traits>

#include "base/diagnostics.hpp"
#include "log/clock/clock_step.hpp"
#include "log/compact/compact_block.hpp"
#include "log/compact/compact_reader.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {

/// Converts records to lines of the text log of one role (main, worker or side log). The member
/// `name` of a line is valid until line_of() is called again.
class compact_lines {
 public:
  explicit compact_lines(file_role role) noexcept : role_(role) {}

  /// Converts a record to a line. Returns false if a text log of this object's role (main, worker
  /// or side log) has no such line for the record.
  bool line_of(const compact_record& record, log_line& line) {
    if (record.kind != lotus::detail::event_kind::operation) return line_of_batch(record, line);
    line.name = record.name;
    line.start_ns = record.start_ns;
    line.duration_ns = record.duration_ns;
    line.kind = record_kind::op;
    line.batch = -1;
    return role_ != file_role::main;
  }
  static bool line_of(const compact_record& record, side_line& line) noexcept;

 private:
  bool line_of_batch(const compact_record& record, log_line& line);

  file_role role_;
  std::string batch_name_;
};

/// Reads the lines of a compact log for read_lines(). Skips damaged blocks and reports them; the
/// message contains the number of the next readable block.
template <class Line, class OnRecord>
void read_compact_lines(const log_file& file, diagnostic_log* diagnostics, OnRecord&& on_record) {
  compact_reader blocks(file);
  compact_decoder decoder;
  compact_lines lines(file.role);
  clock_follower clock(file.clock.get());
  compact_record record;
  Line line;
  lotus::detail::compact_block_header header{};
  const auto malformed = [&](const char* what) {
    if (diagnostics != nullptr) diagnostics->malformed(file.path, blocks.blocks(), what);
  };
  while (true) {
    const std::string_view block = blocks.next(header);
    if (blocks.skipped()) {
      decoder.lost_blocks();
      if (block.empty() && diagnostics != nullptr) {
        diagnostics->note(file.path + ": incomplete last block ignored");
      } else {
        malformed("bytes before this block are damaged and ignored");
      }
    }
    if (block.empty()) break;
    if (!decoder.begin(header, block)) {
      malformed(decoder.error() != nullptr ? decoder.error()
                                           : "the names of this block were in a damaged one");
      continue;
    }
    const auto next = [&] {
      return std::is_same_v<Line, side_line> ? decoder.next_side_line(record)
                                             : decoder.next(record);
    };
    while (next()) {
      if (!lines.line_of(record, line)) continue;
      if (clock.active()) clock.correct(line);
      on_record(line);
    }
    if (decoder.error() != nullptr) malformed(decoder.error());
  }
  if (diagnostics != nullptr) diagnostics->end_of_file(file.path);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_LINES_HPP
