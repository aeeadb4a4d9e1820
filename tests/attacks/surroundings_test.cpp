// Tests attacks on what surrounds the library: its folder, file systems, /proc, limits of the
// process, other allocators and other ways to create processes.

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "../faults/recording.hpp"
#include "../faults/small_disk.hpp"
#include "catch.hpp"
#include "loop_disk.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using support::collected_messages;
using support::count_named;
using support::options_for;
using support::read_logs;
using support::record;
using support::recover_all;
using support::status_of_child;

namespace {

namespace fs = std::filesystem;

/// Waits for a message of the library. Returns whether it came.
bool message_comes(const char* part) {
  for (int i = 0; i < 2000; ++i) {
    if (collected_messages::count(part) > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool start_with_messages(const support::temp_directory& run) {
  auto o = options_for(run);
  o.cpu_time = false;
  o.on_message = &collected_messages::add;
  collected_messages::clear();
  return lotus::start(o);
}

/// Moves the memory of this process from one node of the machine to another, again and again.
/// Returns false if the kernel does not allow that.
bool move_between_nodes(int times) {
  std::uint64_t last = 0;
  while (fs::exists("/sys/devices/system/node/node" + std::to_string(last + 1))) ++last;
  const unsigned long ends[] = {1, 1UL << last % 64};
  for (int i = 0; i < times; ++i) {
    if (syscall(SYS_migrate_pages, 0, 64, &ends[i % 2], &ends[1 - i % 2]) < 0) return false;
    usleep(2000);
  }
  return true;
}

/// Removes a folder in which the library may be creating a file at this moment.
void remove_folder(const fs::path& folder) {
  std::error_code error;
  do {
    fs::remove_all(folder, error);
  } while (error == std::errc::directory_not_empty);
  if (error) throw fs::filesystem_error("cannot be removed", folder, error);
}

bool is_skipped(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

}  // namespace

TEST_CASE("a folder that was deleted and made again is used, also by running threads") {
  const support::temp_directory run;
  const bool killed = GENERATE(true, false);
  const int status = status_of_child([&] {
    if (!start_with_messages(run)) _exit(1);
    record("before", 100);
    lotus::flush();
    remove_folder(run.path());
    fs::create_directory(run.path());
    if (!message_comes("exists again and is used")) _exit(2);
    record("after", 1000);
    if (killed) raise(SIGKILL);
    lotus::stop();
    _exit(lotus::dropped() == 0 ? 0 : 3);
  });
  CHECK(killed == WIFSIGNALED(status));
  if (!killed) CHECK(status == 0);
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 0);
  CHECK(count_named(lines, "Safter") == 1000);
}

TEST_CASE("records of a deleted folder are counted as lost, and recovery is not advised") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    if (!start_with_messages(run)) _exit(1);
    record("before", 100);
    lotus::flush();
    remove_folder(run.path());
    if (!message_comes("was deleted")) _exit(2);
    record("lost", 1000);
    lotus::stop();
    if (lotus::dropped() != 1000) _exit(3);
    _exit(collected_messages::count("recover") == 0 ? 0 : 4);
  });
  CHECK(status == 0);
}

TEST_CASE("a file system that was frozen for long is reported") {
  const support::temp_directory run;
  const fs::path at = run.path() / "disk";
  const support::loop_disk disk{at, "mkfs.ext4 -q -F", std::size_t{64} << 20};
  if (!disk.mounted()) return;
  int thawed[2];
  REQUIRE(pipe2(thawed, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    auto o = options_for(run);
    o.log_file = (at / "log").string();
    o.on_message = &collected_messages::add;
    collected_messages::clear();
    if (!lotus::start(o)) _exit(1);
    record("before", 100);
    lotus::flush();
    char go = 0;
    if (read(thawed[0], &go, 1) != 1) _exit(2);
    record("frozen", 100'000);
    _exit(message_comes("was frozen or is very slow") ? 0 : 3);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const int folder = open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool frozen = ioctl(folder, FIFREEZE, 0) == 0;
  CHECK(write(thawed[1], "", 1) == 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  if (frozen) ioctl(folder, FITHAW, 0);
  close(folder);
  if (!frozen) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!frozen) return lotus_test::skip("cannot freeze a file system here");
  CHECK(status == 0);
}

TEST_CASE("a process may enter a user namespace after it has stopped recording") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    if (!lotus::start(options_for(run))) _exit(1);
    record("before", 100);
    if (unshare(CLONE_NEWUSER) == 0) _exit(2);  // then the documentation is wrong
    if (errno != EINVAL) _exit(77);
    lotus::stop();
    int tries = 0;
    while (unshare(CLONE_NEWUSER) != 0) {
      if (errno == EPERM || errno == ENOSPC) _exit(77);
      if (++tries == 500) _exit(3);
      usleep(10'000);
    }
    if (!lotus::start(options_for(run))) _exit(4);
    record("after", 100);
    lotus::stop();
    _exit(0);
  });
  if (is_skipped(status)) return lotus_test::skip("no user namespaces here");
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Safter") == 100);
}

TEST_CASE("locked memory that is used up drops records, which are counted, and kills nobody") {
  if (getuid() != 0) return lotus_test::skip("only root can change its user");
  const support::temp_directory run;
  fs::permissions(run.path(), fs::perms::all);
  for (int kib = 0; kib <= 1024; kib += 32) {
    CAPTURE(kib);
    const int status = status_of_child([&] {
      long pages = 0;
      std::ifstream{"/proc/self/statm"} >> pages;
      const rlim_t bytes = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) +
                           static_cast<rlim_t>(kib) * 1024;
      const rlimit limit{bytes, bytes};
      volatile char stack[64 << 10];
      for (volatile char& byte : stack) byte = 0;  // growing the locked stack would kill anyone
      if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0 ||
          mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        _exit(77);
      }
      auto o = options_for(run);
      o.cpu_time = false;
      lotus::start(o);
      record("locked", 20'000);
      lotus::stop();
      _exit(0);
    });
    CHECK((status == 0 || is_skipped(status)));
  }
}

TEST_CASE("a process without /proc ends when main() has left") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        umount2("/proc", MNT_DETACH) != 0) {
      _exit(77);
    }
    const pid_t pid = fork();
    if (pid == 0) {
      execl(ATTACKED_PROGRAM, ATTACKED_PROGRAM, "leave", run.path().c_str(), nullptr);
      _exit(1);
    }
    int of_program = -1;
    waitpid(pid, &of_program, 0);
    _exit(of_program == 0 ? 0 : 2);
  });
  if (is_skipped(status)) return lotus_test::skip("cannot unmount /proc here");
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Safter") == 1);
}

TEST_CASE("a process that may start no thread writes its records itself") {
  if (getuid() != 0) return lotus_test::skip("only root can change its user");
  const support::temp_directory run;
  fs::permissions(run.path(), fs::perms::all);
  const int status = status_of_child([&] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    try {
      std::thread{[] {}}.join();
      _exit(77);
    } catch (const std::system_error&) {
    }
    if (!lotus::start(options_for(run))) _exit(1);
    record("alone", 100'000);
    lotus::stop();
    _exit(lotus::dropped() == 0 ? 0 : 2);
  });
  if (is_skipped(status)) return lotus_test::skip("RLIMIT_NPROC does not count here");
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Salone") == 100'000);
}

TEST_CASE("other allocators may replace malloc") {
  const support::temp_directory run;
  const std::string library = GENERATE("libjemalloc.so.2", "libtcmalloc_minimal.so.4");
  const int status = status_of_child([&] {
    setenv("LD_PRELOAD", library.c_str(), 1);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execl(ATTACKED_PROGRAM, ATTACKED_PROGRAM, "leave", run.path().c_str(), nullptr);
    _exit(1);
  });
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Safter") == 1);
  const bool found = support::loop_disk::run("ldconfig -p | grep -q " + library);
  if (!found) return lotus_test::skip("no " + library);
}

TEST_CASE("children of vfork disturb no recording") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    auto o = options_for(run);
    o.ring_records = 64;
    if (!lotus::start(o)) _exit(1);
    for (int i = 0; i < 300; ++i) {
      record("parent", 10);
      const pid_t pid = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
      if (pid == 0) {
        if (i % 2 == 0) _exit(0);
        execl("/bin/true", "true", nullptr);
        _exit(0);
      }
      int ended = 0;
      waitpid(pid, &ended, 0);
    }
    lotus::stop();
    _exit(lotus::dropped() == 0 ? 0 : 2);
  });
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Sparent") == 3000);
}

TEST_CASE("a killed process is recovered from an overlay file system") {
  const support::temp_directory run;
  const auto below = run.path() / "below";
  const support::small_disk disk{below, std::size_t{16} << 20};
  if (!disk.mounted()) return;
  for (const char* const folder : {"lower", "upper", "work", "merged"}) {
    fs::create_directory(below / folder);
  }
  const std::string layers = "lowerdir=" + (below / "lower").string() +
                             ",upperdir=" + (below / "upper").string() +
                             ",workdir=" + (below / "work").string();
  const auto merged = below / "merged";
  if (mount("overlay", merged.c_str(), "overlay", 0, layers.c_str()) != 0) {
    return lotus_test::skip("cannot mount an overlay here");
  }
  const int status = status_of_child([&] {
    auto o = options_for(run);
    o.log_file = (merged / "log").string();
    o.ring_records = 64;
    if (!lotus::start(o)) _exit(1);
    record("overlaid", 1000);
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const int fd = open(merged.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  CHECK(count_named(read_logs(merged), "Soverlaid") == 1000);
  umount2(merged.c_str(), MNT_DETACH);
}

TEST_CASE("a process whose memory is moved between nodes loses nothing") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    auto o = options_for(run);
    o.ring_records = 64;
    if (!lotus::start(o)) _exit(1);
    std::thread recording{[] { record("moved", 200'000); }};
    const bool moved = move_between_nodes(50);
    recording.join();
    lotus::stop();
    _exit(!moved ? 77 : lotus::dropped() == 0 ? 0 : 2);
  });
  if (is_skipped(status)) return lotus_test::skip("cannot move memory between nodes here");
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Smoved") == 200'000);
}

TEST_CASE("a process that was stored and restored by CRIU goes on to record") {
  if (!support::loop_disk::run("criu check")) return lotus_test::skip("no CRIU that works here");
  const support::temp_directory run;
  const support::temp_directory images;
  const fs::path fifo = images.path() / "commands";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    const int input = open(fifo.c_str(), O_RDWR);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(input, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    execl(ATTACKED_PROGRAM, ATTACKED_PROGRAM, "obey", run.path().c_str(), nullptr);
    _exit(1);
  }
  const int commands = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(write(commands, "1000\n", 5) == 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::string where = " -D " + images.path().string();
  const bool stored = support::loop_disk::run("criu dump -t " + std::to_string(pid) + where);
  if (!stored) kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  if (!stored || !support::loop_disk::run("criu restore -d" + where)) {
    return lotus_test::skip("CRIU cannot store a process here");
  }
  CHECK(write(commands, "1000\n", 5) == 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(pid, SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  recover_all(run);
  CHECK(count_named(read_logs(run.path()), "Sobeyed") == 2000);
  close(commands);
}
