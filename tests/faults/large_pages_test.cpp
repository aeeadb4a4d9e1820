// Tests file mappings on a simulated kernel with pages of 64 KiB, which some aarch64 systems have.

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

namespace {
constexpr long page_bytes = 65536;
}

extern "C" long sysconf(int name) noexcept {
  static const auto real = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  return name == _SC_PAGESIZE ? page_bytes : real(name);
}

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                      off_t offset) noexcept {
  if (offset % page_bytes != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

TEST_CASE("a kill loses no records on a kernel with pages of 64 KiB") {
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    lotus::start(support::options_for(run));
    { LOTUS_SCOPE("drained"); }
    lotus::flush();
    { LOTUS_SCOPE("in the ring"); }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 1);
  support::recover_all(run);
  const auto lines = support::read_logs(run.path());
  CHECK(support::count_named(lines, "Sdrained") == 1);
  CHECK(support::count_named(lines, "Sin the ring") == 1);
}
