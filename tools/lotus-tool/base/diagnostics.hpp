// What a command says about its input, on stderr.
#ifndef LOTUS_TOOL_BASE_DIAGNOSTICS_HPP
#define LOTUS_TOOL_BASE_DIAGNOSTICS_HPP

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Counts and prints what is odd about the input. Not thread-safe; `err` must outlive it.
class diagnostic_log {
 public:
  /// Of one file, this many malformed lines are printed; the others are only counted.
  static constexpr std::uint64_t printed_per_file = 100;

  diagnostic_log(std::ostream& err, bool quiet) : err_(err), quiet_(quiet) {}

  /// An oddity that costs nothing. Not printed with --quiet, nor twice.
  void note(std::string_view text);

  /// Something was left out or may be wrong. Printed also with --quiet, but not twice.
  void warning(std::string_view text);

  /// A line that was left out.
  void malformed(const std::string& path, std::uint64_t line, std::string_view what);

  /// A whole file that was left out.
  void malformed_file(const std::string& path, std::string_view what);

  /// To be called behind a file's last line: says how many lines were not printed.
  void end_of_file(const std::string& path);

  /// Adds what was said and counted elsewhere, about a file read by another thread; a note that was
  /// printed here is not printed again.
  /// @param text  what that other object printed.
  void absorb(std::string_view text, const diagnostic_log& other);

  /// One that prints nothing, for reading again what was told about already.
  static diagnostic_log silenced();

  bool quiet() const noexcept { return quiet_; }

  std::uint64_t malformed_lines() const noexcept { return malformed_lines_; }

  /// The exit status that what is malformed asks for; prints how much there was.
  /// @param strict  anything malformed is an error.
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
