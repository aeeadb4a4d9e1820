#include "base/diagnostics.hpp"

#include <algorithm>
#include <cstddef>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

constexpr std::string_view note_start = "note: ";

}  // namespace

std::ostream& diagnostic_log::begin_line() {
  // On a terminal, a progress bar may be in the current line, so clear the line first.
  if (has_colours(err_)) err_ << "\r\x1b[K";
  return err_;
}

void diagnostic_log::note(std::string_view text) {
  if (quiet_) return;
  const auto [line, fresh] = notes_.insert(std::string(note_start) + printable_line(text) + '\n');
  if (fresh) begin_line() << *line;
}

void diagnostic_log::warning(std::string_view text) {
  if (!warnings_.emplace(text).second) return;
  begin_line() << styled(err_, style::yellow, "warning:") << ' ' << printable_line(text) << '\n';
}

void diagnostic_log::malformed(const std::string& path, std::uint64_t line, std::string_view what) {
  ++malformed_lines_;
  if (++malformed_in_file_ > printed_per_file) return;
  begin_line() << printable_line(path) << ':' << line << ": " << what << '\n';
}

void diagnostic_log::end_of_file(const std::string& path) {
  if (malformed_in_file_ > printed_per_file) {
    begin_line() << printable_line(path) << ": " << malformed_in_file_ - printed_per_file
                 << " more malformed lines\n";
  }
  malformed_in_file_ = 0;
}

void diagnostic_log::absorb(std::string_view text, const diagnostic_log& other) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    const bool is_note = line.substr(0, note_start.size()) == note_start;
    if (!is_note || notes_.emplace(line).second) err_ << line;
    text.remove_prefix(line.size());
  }
  malformed_lines_ += other.malformed_lines_;
  malformed_files_ += other.malformed_files_;
}

void diagnostic_log::malformed_file(const std::string& path, std::string_view what) {
  ++malformed_files_;
  warning(path + ": " + std::string(what));
}

diagnostic_log diagnostic_log::silenced() {
  static std::ostream nowhere(nullptr);  // a stream without a buffer discards its output
  return {nowhere, true};
}

int diagnostic_log::finish(bool strict) {
  if (malformed_lines_ > 0) {
    warning(counted(malformed_lines_, "malformed line ignored", "malformed lines ignored"));
  }
  if (!strict || malformed_lines_ + malformed_files_ == 0) return exit_fine;
  begin_line() << styled(err_, style::red, "error:")
               << " the input is malformed, which --strict does not allow\n";
  return exit_bad_input;
}

}  // namespace lotus::tool
