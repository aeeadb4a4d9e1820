#include "diagnostics.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "colours.hpp"
#include "errors.hpp"
#include "names.hpp"

namespace lotus::tool {

std::ostream& diagnostics::begin_line() {
  // On a terminal a progress bar may stand in this line.
  if (has_colours(err_)) err_ << "\r\x1b[K";
  return err_;
}

void diagnostics::note(std::string_view text) {
  if (!quiet_ && notes_.emplace(text).second)
    begin_line() << "note: " << printable_line(text) << '\n';
}

void diagnostics::warning(std::string_view text) {
  begin_line() << styled(err_, style::yellow, "warning:") << ' ' << printable_line(text) << '\n';
}

void diagnostics::malformed(const std::string& path, std::uint64_t line, std::string_view what) {
  ++malformed_lines_;
  if (++malformed_in_file_ > printed_per_file) return;
  begin_line() << printable_line(path) << ':' << line << ": " << what << '\n';
}

void diagnostics::end_of_file(const std::string& path) {
  if (malformed_in_file_ > printed_per_file) {
    begin_line() << printable_line(path) << ": " << malformed_in_file_ - printed_per_file
                 << " more malformed lines\n";
  }
  malformed_in_file_ = 0;
}

void diagnostics::absorb(std::string_view text, const diagnostics& other) {
  err_ << text;
  malformed_lines_ += other.malformed_lines_;
}

void diagnostics::malformed_file(const std::string& path, std::string_view what) {
  ++malformed_files_;
  warning(path + ": " + std::string(what));
}

diagnostics diagnostics::silenced() {
  static std::ostream nowhere(nullptr);  // a stream without a buffer drops what is written
  return {nowhere, true};
}

int diagnostics::finish(bool strict) {
  if (malformed_lines_ > 0) {
    warning(std::to_string(malformed_lines_) +
            (malformed_lines_ == 1 ? " malformed line left out" : " malformed lines left out"));
  }
  if (!strict || malformed_lines_ + malformed_files_ == 0) return exit_fine;
  begin_line() << styled(err_, style::red, "error:")
               << " the input is malformed, which --strict does not allow\n";
  return exit_bad_input;
}

}  // namespace lotus::tool
