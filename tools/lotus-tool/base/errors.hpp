// Defines the exit statuses of commands, and exceptions that end a command early.
#ifndef LOTUS_TOOL_BASE_ERRORS_HPP
#define LOTUS_TOOL_BASE_ERRORS_HPP

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lotus::tool {

inline constexpr int exit_fine = 0;
inline constexpr int exit_bad_input = 1;
inline constexpr int exit_wrong_use = 2;
/// Exit status of a command that could not find what the user asked for, for example settings that
/// reach a given throughput. The value is 4, because 3 means that a requested test failed.
inline constexpr int exit_no_answer = 4;

/// Thrown if an input or output cannot be used; what() is one line with the path and the reason.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown if a file was there when its folder was read, but no longer when it was opened: its
/// process has renamed or deleted it.
struct vanished_file : input_error {
  using input_error::input_error;
};

/// Thrown if the command line is incorrect; what() is one line that explains what to change.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the system's text for a value of errno.
inline std::string error_text(int error) {
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe)
}

/// Formats an error message as "path:line: what".
inline std::string at_line(const std::string& path, std::size_t line, std::string_view what) {
  return path + ':' + std::to_string(line) + ": " + std::string(what);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_ERRORS_HPP
