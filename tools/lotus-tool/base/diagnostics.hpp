// Messages about a command's input, on stderr.
#ifndef LOTUS_TOOL_BASE_DIAGNOSTICS_HPP
#define LOTUS_TOOL_BASE_DIAGNOSTICS_HPP

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Counts and prints problems of the input. Not thread-safe; `err` must outlive it.
class diagnostic_log {
 public:
  /// Maximum number of malformed lines printed for each file; the others are only counted.
  static constexpr std::uint64_t printed_per_file = 100;

  diagnostic_log(std::ostream& err, bool quiet) : err_(err), quiet_(quiet) {}

  /// Reports an oddity that has no effect on results. Printed once, and not with --quiet.
  void note(std::string_view text);

  /// Reports that something was left out or may be wrong. Printed once, also with --quiet.
  void warning(std::string_view text);

  /// Reports a line that was ignored.
  void malformed(const std::string& path, std::uint64_t line, std::string_view what);

  /// Reports a whole file that was ignored.
  void malformed_file(const std::string& path, std::string_view what);

  /// Call it after a file's last line: reports how many malformed lines were not printed.
  void end_of_file(const std::string& path);

  /// Adds the messages and counts of a file that another thread has read; a note that was printed
  /// here already is not printed again.
  /// @param text  the messages that the other object printed.
  void absorb(std::string_view text, const diagnostic_log& other);

  /// Returns an object that prints nothing, for reading input again whose problems were reported.
  static diagnostic_log silenced();

  bool quiet() const noexcept { return quiet_; }

  std::uint64_t malformed_lines() const noexcept { return malformed_lines_; }

  /// Returns the exit status and prints the number of malformed lines.
  /// @param strict  treat any malformed input as an error.
  int finish(bool strict);

 private:
  std::ostream& begin_line();

  std::ostream& err_;
  bool quiet_;
  std::set<std::string> notes_;  // as printed, whole lines
  std::set<std::string> warnings_;
  std::uint64_t malformed_lines_ = 0;
  std::uint64_t malformed_files_ = 0;
  std::uint64_t malformed_in_file_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_DIAGNOSTICS_HPP
