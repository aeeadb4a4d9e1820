// Removes possible secrets from a run's files.
#ifndef LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP
#define LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lotus::tool {

/// Removes command lines, arguments of scopes, and names of hosts and folders from lines and texts.
/// Also removes from information files every field that may be a secret. With `hide_names`,
/// replaces the names of operations, stages, counters, threads and loaders by S1, S2, ... in order
/// of appearance. text() replaces only names that occurred in an earlier line.
class scrubber {
 public:
  explicit scrubber(bool hide_names) : hide_names_(hide_names) {}

  /// Removes secrets from one line of an information file, which describes a recording process. The
  /// line is given without its line end, and so are those of log_line() and side_line().
  std::string info_line(std::string_view line);
  std::string log_line(std::string_view line);
  std::string side_line(std::string_view line);
  /// Returns the replacement for a name that is encoded as in logs, and makes text() replace the
  /// name. Without `hide_names`, returns the name itself.
  std::string name(std::string_view encoded);
  /// Returns the output of a command, in which every word that was passed to forget() is replaced.
  std::string text(const std::string& printed) const;
  /// Makes text() replace `word` by `replacement` from now on.
  void forget(const std::string& word, const std::string& replacement);

 private:
  bool hide_names_;
  std::map<std::string, std::string, std::less<>> aliases_;  // replacements by encoded name
  // For each word that text() replaces, its replacement.
  std::map<std::string, std::string, std::less<>> forgotten_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_BUNDLE_SCRUBBER_HPP
