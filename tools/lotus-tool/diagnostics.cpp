#include "diagnostics.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "names.hpp"

namespace lotus::tool {

void diagnostics::note(std::string_view text) {
  if (!quiet_) err_ << "note: " << printable_line(text) << '\n';
}

void diagnostics::warning(std::string_view text) {
  err_ << "warning: " << printable_line(text) << '\n';
}

void diagnostics::malformed(const std::string& path, std::uint64_t line, std::string_view what) {
  ++malformed_lines_;
  if (++malformed_in_file_ > printed_per_file) return;
  err_ << printable_line(path) << ':' << line << ": " << what << '\n';
}

void diagnostics::end_of_file(const std::string& path) {
  if (malformed_in_file_ > printed_per_file) {
    err_ << printable_line(path) << ": " << malformed_in_file_ - printed_per_file
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

diagnostics diagnostics::silenced() const {
  static std::ostream nowhere(nullptr);  // a stream without a buffer drops what is written
  return {nowhere, true};
}

int diagnostics::finish(bool strict) {
  if (malformed_lines_ > 0) {
    warning(std::to_string(malformed_lines_) +
            (malformed_lines_ == 1 ? " malformed line left out" : " malformed lines left out"));
  }
  if (!strict || malformed_lines_ + malformed_files_ == 0) return exit_fine;
  err_ << "error: the input is malformed, which --strict does not allow\n";
  return exit_bad_input;
}

}  // namespace lotus::tool
