// The log files that a thread keeps open.
#ifndef LOTUS_OPEN_LOGS_HPP
#define LOTUS_OPEN_LOGS_HPP

#include <unistd.h>

#include "lotus/config.hpp"
#include "lotus/layout.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Descriptors of a thread's two logs, by role; -1 where closed.
struct open_logs {
  int fds[log_roles] = {-1, -1};

  void close_all() noexcept {
    for (int& fd : fds) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPEN_LOGS_HPP
