// Exit statuses, and the exceptions that end a command early.
#ifndef LOTUS_TOOL_BASE_ERRORS_HPP
#define LOTUS_TOOL_BASE_ERRORS_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lotus::tool {

inline constexpr int exit_fine = 0;
inline constexpr int exit_bad_input = 1;
inline constexpr int exit_wrong_use = 2;
/// For a question that has no answer, such as a target that is out of reach or a verdict that
/// cannot be given. Exit status 3 is used if the answer is one that the script treats as a failure.
inline constexpr int exit_no_answer = 4;

/// The input or the output's place cannot be used; what() is one line with what and why.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command was called incorrectly; what() is one line that says what to change.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Formats an error message as "path:line: what".
inline std::string at_line(const std::string& path, std::size_t line, std::string_view what) {
  return path + ':' + std::to_string(line) + ": " + std::string(what);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_ERRORS_HPP
