// What tests of faults need of the library: silent options, and recovery of all that died.
#ifndef LOTUS_TESTS_RECORDING_HPP
#define LOTUS_TESTS_RECORDING_HPP

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

/// How a forked child ended; one that hangs is killed.
template <class Body>
int status_of_child(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    body();
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace support

#endif  // LOTUS_TESTS_RECORDING_HPP
