// Removes possible secrets from a run's files.
#ifndef LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP
#define LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Removes command lines, arguments of scopes, and names of hosts and folders from lines and texts.
/// With `hide_names`, also replaces the names of operations, stages, counters, threads and loaders
/// by S1, S2, ... in order of appearance. Removes every field of a line whose meaning is unknown.
/// text() replaces only names that occurred in an earlier line.
class scrubber {
 public:
  explicit scrubber(bool hide_names) : hide_names_(hide_names) {}

  /// Scrubs a line of an information file, given without its line end.
  std::string info_line(std::string_view line);
  std::string log_line(std::string_view line);
  std::string side_line(std::string_view line);
  /// Returns the replacement for an escaped name of a log, and remembers the name for text().
  std::string name(std::string_view encoded);
  /// Scrubs the output of a command.
  std::string text(const std::string& printed) const;
  /// Makes text() replace this word from now on.
  void forget(const std::string& word, const std::string& replacement);

 private:
  bool hide_names_;
  std::map<std::string, std::string, std::less<>> aliases_;  // replacements by escaped name
  // For each word that text() replaces, its replacement.
  std::map<std::string, std::string, std::less<>> forgotten_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP
