// Writes the calls that a stand-in for a profiler's library receives to a file.
#ifndef LOTUS_TESTS_STAND_IN_NOTE_HPP
#define LOTUS_TESTS_STAND_IN_NOTE_HPP

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace stand_in {

/// Appends a line to the file that the environment variable names. Does nothing if the variable is
/// not set.
// Signal handlers call this function, so it allocates no memory and writes each line with one
// write().
inline void note(const char* what, const char* name = "", const char* variable = "STAND_IN_LOG") {
  const char* path = std::getenv(variable);
  if (path == nullptr) return;
  char line[300];
  const int length = std::snprintf(line, sizeof line, "%s%s\n", what, name);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line, static_cast<std::size_t>(length)) != length) std::abort();
  close(file);
}

}  // namespace stand_in

#endif  // LOTUS_TESTS_STAND_IN_NOTE_HPP
