// The last lines of one log, in the order in which they were written.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace lotus::tool {

/// When the last record of whole lines was over; none where none of the last lines is one.
/// @param beside  the lines are of a hidden log beside the others.
std::optional<std::int64_t> last_end(std::string_view lines, bool beside);

/// Where in whole `lines`, which are in order of their ends, the first one begins that ended at
/// `begin_ns` or later; their size where none did.
std::size_t first_since(std::string_view lines, std::int64_t begin_ns, bool beside);

/// Lines of one log that ended since some moment; what is older is given back.
class line_window {
 public:
  explicit line_window(bool beside) : beside_(beside) {}

  /// @param lines  whole ones, with their line ends.
  void add(std::string lines);

  /// Forgets what ended before `begin_ns`.
  void trim(std::int64_t begin_ns);

  std::string text() const;
  std::size_t bytes() const noexcept { return bytes_; }
  /// The latest end of all lines that ever were in it, if there were any.
  std::optional<std::int64_t> last_ns() const noexcept { return last_ns_; }

 private:
  std::deque<std::string> parts_;  // as they came
  std::size_t gone_ = 0;           // bytes of the first that were trimmed
  std::size_t bytes_ = 0;
  std::optional<std::int64_t> last_ns_;
  bool beside_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LINE_WINDOW_HPP
