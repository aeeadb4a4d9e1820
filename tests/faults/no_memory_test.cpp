// Tests a process that cannot allocate memory: it must continue and record as much as possible, and
// lose nothing if the kernel kills it therefore.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "shared_page.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::recover_all;
using support::status_of_child;

namespace {

/// A control group with a memory limit, of version 1 or 2, for one process. Is deleted at the end.
class memory_group {
 public:
  explicit memory_group(std::size_t bytes) {
    const std::string name = "/lotus_test_" + std::to_string(getpid());
    for (const auto& [root, limit] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                      std::pair{"/sys/fs/cgroup", "memory.max"}}) {
      const support::fs::path path = root + name;
      if (mkdir(path.c_str(), 0700) != 0) continue;
      if (write(path / limit, std::to_string(bytes))) {
        path_ = path;
        // Otherwise, memory may be swapped out instead.
        write(path / (path_.parent_path().filename() == "memory" ? "memory.swappiness"
                                                                 : "memory.swap.max"),
              "0");
        return;
      }
      rmdir(path.c_str());
    }
  }
  ~memory_group() {
    if (exists()) rmdir(path_.c_str());
  }
  memory_group(const memory_group&) = delete;
  memory_group& operator=(const memory_group&) = delete;

  bool exists() const { return !path_.empty(); }
  /// Moves the calling process into the group.
  bool enter() const { return write(path_ / "cgroup.procs", std::to_string(getpid())); }

 private:
  static bool write(const support::fs::path& file, const std::string& text) {
    std::ofstream to{file};
    to << text << std::flush;
    return to.good();
  }

  support::fs::path path_;
};

}  // namespace

TEST_CASE("no record is lost when the kernel kills a process at its control group's memory limit") {
  const support::temp_directory run;
  const memory_group group{std::size_t{48} << 20};
  if (!group.exists()) return lotus_test::skip("cannot make a control group with a memory limit");
  support::shared_page ended{(run.path() / "ended").string()};
  const int status = status_of_child([&] {
    if (!group.enter()) _exit(1);
    lotus::start(options_for(run));
    for (;;) {
      for (int scopes = 0; scopes < 1000; ++scopes) {
        { LOTUS_SCOPE("allocate"); }
        ended[0].fetch_add(1, std::memory_order_relaxed);
      }
      constexpr std::size_t bytes = std::size_t{256} << 10;
      // The memory is never freed.
      std::memset(static_cast<char*>(std::malloc(bytes)), 1, bytes);
    }
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  const std::uint64_t scopes = ended[0];
  CHECK(scopes > 100'000);
  recover_all(run);
  const std::uint64_t logged = count_named(read_logs(run.path()), "Sallocate");
  // A scope may have ended that was not counted before the kill.
  CHECK(logged >= scopes);
  CHECK(logged <= scopes + 1);
}

TEST_CASE("an operation whose name gets no memory is recorded as (unnamed), with one message") {
  const support::temp_directory run;
  const int status = status_of_child([&] {
    static int said = 0;
    lotus::options o = options_for(run);
    o.drain_interval_ms = 1'000'000;
    o.on_message = [](const char* message) {
      said += std::string{message}.find("recorded as (unnamed)") != std::string::npos ? 1 : 0;
    };
    lotus::start(o);
    { LOTUS_SCOPE("first"); }
    lotus::flush();
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    const rlimit none{1 << 20, limit.rlim_max};
    char name[1001];
    setrlimit(RLIMIT_AS, &none);
    for (int i = 0; i < 1000; ++i) {
      std::memset(name, 'a' + i % 26, 1000);
      std::snprintf(name + 900, 101, "%d", i);
      LOTUS_SCOPE_DYNAMIC(name);
    }
    setrlimit(RLIMIT_AS, &limit);
    { LOTUS_SCOPE("last"); }
    if (said != 1 || lotus::dropped() != 0) _exit(1);
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  recover_all(run);
  const auto lines = read_logs(run.path());
  CHECK(lines.size() == 1002);
  CHECK(count_named(lines, "S(unnamed)") > 500);
  CHECK(count_named(lines, "Slast") == 1);
}
