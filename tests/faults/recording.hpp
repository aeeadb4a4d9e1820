// Helps tests of faults: recording without messages, and recovering the logs of dead processes.
#ifndef LOTUS_TESTS_RECORDING_HPP
#define LOTUS_TESTS_RECORDING_HPP

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "support.hpp"

namespace support {

inline lotus::options options_for(const temp_directory& run) {
  lotus::options o;
  o.log_file = run.prefix();
  o.on_message = [](const char*) {};
  return o;
}

inline void recover_all(const temp_directory& run) {
  const int fd = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::recover_directory(fd, nullptr);
  close(fd);
}

/// Records an operation several times.
inline void record(std::string_view name, int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE_DYNAMIC(name);
}

/// Waits for the end of a child. Returns whether its exit status is 0.
inline bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Runs `body` in a forked child and returns the child's wait status. Kills the child if it hangs.
/// If `body` throws, the child says why and fails, instead of going on with the parent's next test.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a child failed: %s\n", error.what());
      _exit(99);
    } catch (...) {
      _exit(99);
    }
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace support

#endif  // LOTUS_TESTS_RECORDING_HPP
