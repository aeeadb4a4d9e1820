// Helps tests of faults: recording without messages, and recovering the logs of dead processes.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

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

/// Runs `body` in a forked child and returns the child's wait status. Kills the child if it hangs.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    body();
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace support
