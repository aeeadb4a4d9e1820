// Tests a process that cannot allocate memory: it must continue and record as much as possible.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::recover_all;
using support::status_of_child;

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
