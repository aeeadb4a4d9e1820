// Reads a log line by line in constant memory, and decides which malformed lines are accepted.
#ifndef LOTUS_TOOL_LOG_LOG_READER_HPP
#define LOTUS_TOOL_LOG_LOG_READER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/clock/clock_step.hpp"
#include "log/compact/compact_lines.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/stored_bytes.hpp"

namespace lotus::tool {

/// Reads a log in blocks: first its older parts, then the bytes on disk, then log_file::tail.
/// Neither copyable nor movable.
class block_reader {
 public:
  /// @param file  must outlive the reader. Throws input_error if the file cannot be opened.
  explicit block_reader(const log_file& file);
  block_reader(const block_reader&) = delete;
  block_reader& operator=(const block_reader&) = delete;
  ~block_reader() = default;

  /// Returns the next complete lines with their line ends, valid until the next call; empty at the
  /// end of the log. Only the last line of the log may lack a line end. A line longer than
  /// max_line_bytes is cut. Throws input_error if reading fails.
  std::string_view next();

 private:
  std::size_t read_some(char* to, std::size_t room);
  std::string_view cut_long_line();

  const log_file& file_;
  stored_bytes stored_;
  std::size_t parts_done_ = 0;  // number of parts in file_.older that were read to their end
  char last_ = '\n';            // the byte that was read last from disk
  std::size_t from_tail_ = 0;
  std::vector<char> buffer_;
  std::size_t used_ = 0;  // number of bytes in the buffer
  std::size_t done_ = 0;  // number of these bytes that next() has already returned
  bool at_end_ = false;
};

/// Deviations of a file from the log format that the reader accepts, such as blank lines. tell()
/// reports each kind of deviation once for the file.
struct file_oddities {
  std::uint64_t blank_lines = 0;
  std::uint64_t lines = 0;
  bool crlf = false;
  bool blanks = false;

  void tell(const log_file& file, diagnostic_log& diagnostics) const;
};

/// Returns the file's path for messages. If reading begins in the middle of the file, adds the
/// position where it begins, because line numbers in messages count from there.
inline std::string shown_path(const log_file& file) {
  return file.first == 0 ? file.path
                         : file.path + " (from byte " + std::to_string(file.first) + " on)";
}

/// Reads the first line of `lines` if read_record() could not. Reports a malformed line to
/// `diagnostics`, if this is not nullptr.
/// @param lines  the rest of a block of lines; set to the lines after the first.
/// @return whether the line contained a record, which is then in `record`.
template <class Line>
bool read_odd_line(const log_file& file, std::string_view& lines, diagnostic_log* diagnostics,
                   file_oddities& odd, Line& record) {
  const std::size_t newline = lines.find('\n');
  std::string_view text = lines.substr(0, newline);
  lines.remove_prefix(newline != std::string_view::npos ? newline + 1 : lines.size());
  if (!text.empty() && text.back() == '\r') {
    text.remove_suffix(1);
    odd.crlf = true;
  }
  const char* const what = parse_line(text, record);
  if (what == nullptr) return true;
  if constexpr (std::is_same_v<Line, log_line>) {
    if (file.clock != nullptr && file.clock->is_back() && parse_negative_duration(text, record))
      return true;
  }
  if (text.find_first_not_of(" \t") == std::string_view::npos) {
    ++odd.blank_lines;
  } else if (diagnostics != nullptr) {
    if (newline == std::string_view::npos && text.size() <= max_line_bytes) {
      diagnostics->note(shown_path(file) + ":" + std::to_string(odd.lines) +
                        ": incomplete last line ignored");
    } else {
      diagnostics->malformed(shown_path(file), odd.lines, what);
    }
  }
  return false;
}

/// Reads the lines of a text log for read_lines().
///
/// Accepts, with a note to `diagnostics`: an empty file, blank lines, CRLF, spaces after commas,
/// and an incomplete last line, which it ignores. Any other line that is not a record is reported
/// by diagnostics->malformed(). Throws input_error if the file cannot be read.
/// @param diagnostics  nullptr if the file was read before, because its problems were reported
/// then.
template <class Line, class OnRecord>
void read_text_lines(const log_file& file, diagnostic_log* diagnostics, OnRecord&& on_record) {
  block_reader blocks(file);
  file_oddities odd;
  clock_follower clock(file.clock.get());
  Line record;
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    const char* p = block.data();
    const char* const block_end = p + block.size();
    while (p != block_end) {
      ++odd.lines;
      // Nearly every line is a well-formed record. Reading the record also finds the line's end, so
      // no separate search for the line's end is needed.
      const char* const after = read_record(p, block_end, record);
      if (after != nullptr && after != block_end && *after == '\n') {
        p = after + 1;
      } else {
        std::string_view lines(p, static_cast<std::size_t>(block_end - p));
        const bool has_record = read_odd_line(file, lines, diagnostics, odd, record);
        p = lines.data();
        if (!has_record) continue;
      }
      odd.blanks |= record.blanks;
      if (clock.active() && !clock.correct(record)) {
        if (diagnostics != nullptr) {
          diagnostics->malformed(shown_path(file), odd.lines, "DURATION is negative");
        }
        continue;
      }
      // The only call, because compilers rarely inline a function that is called twice.
      on_record(record);
    }
  }
  if (diagnostics != nullptr) odd.tell(file, *diagnostics);
}

/// Calls `on_record(const Line&)` for every record of `file`, in file order. Line is log_line, or
/// side_line for side logs. Malformed lines are reported to `diagnostics`. Throws input_error if
/// the file cannot be read.
/// @param diagnostics  nullptr if the file was read before, because its problems were reported
/// then.
template <class Line, class OnRecord>
void read_lines(const log_file& file, diagnostic_log* diagnostics, OnRecord&& on_record) {
  if (!file.compact) return read_text_lines<Line>(file, diagnostics, on_record);
  read_compact_lines<Line>(file, diagnostics, on_record);
  if (file.tail.empty()) return;
  const log_file in_rings{file.path, file.role, file.number, 0, file.tail};
  in_rings.clock = file.clock;
  read_text_lines<Line>(in_rings, diagnostics, on_record);
}

/// Like read_lines(), for a main or worker log.
template <class OnRecord>
void read_log(const log_file& file, diagnostic_log* diagnostics, OnRecord&& on_record) {
  read_lines<log_line>(file, diagnostics, on_record);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_LOG_READER_HPP
