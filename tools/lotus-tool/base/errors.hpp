// What ends a command early, by exit status.
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
/// Of a question on which a script depends: a target that is out of reach, a verdict that cannot be
/// given. 3 is that of an answer that the script calls a failure.
inline constexpr int exit_no_answer = 4;

/// The input (or the place for the output) cannot be used; what() is one line: what and why.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command was called wrongly; what() is one line that says what to change.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "path:line: what", for what is thrown.
inline std::string at_line(const std::string& path, std::size_t line, std::string_view what) {
  return path + ':' + std::to_string(line) + ": " + std::string(what);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_ERRORS_HPP
