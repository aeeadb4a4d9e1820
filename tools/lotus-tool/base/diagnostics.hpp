// Prints messages about problems in a command's input files to stderr, and counts them.
#ifndef LOTUS_TOOL_BASE_DIAGNOSTICS_HPP
#define LOTUS_TOOL_BASE_DIAGNOSTICS_HPP

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Counts and prints problems of the input. Not thread-safe; `err` must outlive the object.
class diagnostic_log {
 public:
  /// Maximum number of malformed lines that are printed for each file; the others are only counted.
  static constexpr std::uint64_t printed_per_file = 100;

  diagnostic_log(std::ostream& err, bool quiet) : err_(err), quiet_(quiet) {}

  /// Reports an anomaly that has no effect on results. Prints each text only once, and nothing at
  /// all with --quiet.
  void note(std::string_view text);

  /// Reports that results may be incomplete or wrong. Prints each text only once, even with
  /// --quiet.
  void warning(std::string_view text);

  /// Reports a malformed line, which the caller ignores.
  void malformed(const std::string& path, std::uint64_t line, std::string_view what);

  /// Reports a malformed file, which the caller ignores completely.
  void malformed_file(const std::string& path, std::string_view what);

  /// Reports how many malformed lines of the file were only counted, not printed. Call it after the
  /// last line of the file was read.
  void end_of_file(const std::string& path);

  /// Adds the messages and counts that another thread collected in `other` while it read a file.
  /// Does not print a note twice.
  /// @param text  the messages that `other` printed.
  void absorb(std::string_view text, const diagnostic_log& other);

  /// Returns an object that prints nothing, for reading an input whose problems are already
  /// reported.
  static diagnostic_log silenced();

  bool quiet() const noexcept { return quiet_; }

  std::uint64_t malformed_lines() const noexcept { return malformed_lines_; }

  /// Prints the number of malformed lines. Returns the exit status.
  /// @param strict  whether to treat malformed input as an error.
  int finish(bool strict);

 private:
  std::ostream& begin_line();

  std::ostream& err_;
  bool quiet_;
  std::set<std::string> notes_;  // notes that were already printed, each a complete line
  std::set<std::string> warnings_;
  std::uint64_t malformed_lines_ = 0;
  std::uint64_t malformed_files_ = 0;
  std::uint64_t malformed_in_file_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_DIAGNOSTICS_HPP
