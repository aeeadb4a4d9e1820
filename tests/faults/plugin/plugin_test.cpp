// Tests that a program and its plugins share one session, although none of them exports symbols of
// the library.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "support.hpp"

using support::count_named;

namespace {

int run_host(const char* host, const char* what, const support::temp_directory& run) {
  const pid_t pid = fork();
  if (pid == 0) {
    support::exec_program(host, {host, what, run.prefix(), FIRST_PLUGIN, SECOND_PLUGIN});
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

void check_one_session(const support::temp_directory& run) {
  // All records are of one thread, so there must be one log. If there were a second session, it
  // would have left a ring file.
  CHECK(support::count_files(run.path(), "lotustrace_log_worker_pid_") == 1);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

}  // namespace

TEST_CASE("two plugins record into the session that the program started, and one is unloaded") {
  const support::temp_directory run;
  REQUIRE(run_host(PLUGIN_HOST_RECORDING_PROGRAM, "host_starts", run) == 0);
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "Sfirst") == 10);
  CHECK(count_named(lines, "Ssecond") == 40);
  CHECK(count_named(lines, "SHost") == 60);
  CHECK(lines.size() == 110);
  check_one_session(run);
}

TEST_CASE("recording continues after the plugin that started the session is unloaded") {
  const support::temp_directory run;
  REQUIRE(run_host(PLUGIN_HOST_RECORDING_PROGRAM, "plugin_starts", run) == 0);
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "Sfirst") == 20);
  CHECK(count_named(lines, "Ssecond") == 40);
  CHECK(count_named(lines, "SHost") == 60);
  check_one_session(run);
}

TEST_CASE("a program's first scope may coincide with the loading of a plugin that records") {
  const support::temp_directory run;
  REQUIRE(run_host(PLUGIN_HOST_RECORDING_PROGRAM, "first_scope_meets_dlopen", run) == 0);
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SHost") == 1);
  CHECK(count_named(lines, "SLoading") == 1);
  CHECK(count_named(lines, "Sfirst") == 1);
}

TEST_CASE("a first scope that loads a profiler's library may coincide with a plugin's loading") {
  const support::temp_directory run;
  setenv("LOTUS_ANNOTATE", "itt", 1);
  setenv("INTEL_LIBITTNOTIFY64", SECOND_PLUGIN, 1);  // a library that is not a collector
  const int status = run_host(PLUGIN_HOST_RECORDING_PROGRAM, "first_scope_meets_dlopen", run);
  unsetenv("LOTUS_ANNOTATE");
  unsetenv("INTEL_LIBITTNOTIFY64");
  REQUIRE(status == 0);
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "SHost") == 1);
  CHECK(count_named(lines, "SLoading") == 2);  // once for each plugin
  CHECK(count_named(lines, "Sfirst") == 1);
}

TEST_CASE("messages of a plugin's collector reach the program's message handler") {
  const support::temp_directory run;
  CHECK(run_host(PLUGIN_HOST_RECORDING_PROGRAM, "host_is_told", run) == 0);
}

TEST_CASE("plugins share one session in a program that does not include the library") {
  const support::temp_directory run;
  REQUIRE(run_host(PLUGIN_HOST_PLAIN_PROGRAM, "plugin_starts", run) == 0);
  const auto lines = support::read_logs(run.path());
  CHECK(count_named(lines, "Sfirst") == 20);
  CHECK(count_named(lines, "Ssecond") == 40);
  CHECK(lines.size() == 60);
  check_one_session(run);
}

TEST_CASE("all objects share one session if /proc, memfd_create or an address is denied") {
  for (const char* denied : {"proc", "memfd", "proc memfd", "addresses"}) {
    INFO(denied);
#ifdef __SANITIZE_THREAD__
    // ThreadSanitizer does not allow the plugin host to map the addresses that it has to block.
    if (std::string{denied} == "addresses") continue;
#endif
    const support::temp_directory run;
    setenv("PLUGIN_HOST_IS_DENIED", denied, 1);
    const int status = run_host(PLUGIN_HOST_RECORDING_PROGRAM, "plugin_starts", run);
    unsetenv("PLUGIN_HOST_IS_DENIED");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      WARN("skipped: this container may not deny it: " << denied);
      continue;
    }
    CHECK(status == 0);
    const auto lines = support::read_logs(run.path());
    CHECK(count_named(lines, "Sfirst") == 20);
    CHECK(count_named(lines, "Ssecond") == 40);
    CHECK(count_named(lines, "SHost") == 60);
    check_one_session(run);
  }
}

#ifndef __SANITIZE_THREAD__
TEST_CASE("each object reports that it found no session if every way to share one is denied") {
  const support::temp_directory run;
  const std::string said = (run.path() / "said").string();
  setenv("PLUGIN_HOST_IS_DENIED", "addresses memfd", 1);
  setenv("PLUGIN_HOST_SAYS_TO", said.c_str(), 1);
  const int status = run_host(PLUGIN_HOST_RECORDING_PROGRAM, "plugin_starts", run);
  unsetenv("PLUGIN_HOST_IS_DENIED");
  unsetenv("PLUGIN_HOST_SAYS_TO");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    WARN("skipped: this container may not deny it");
    return;
  }
  CHECK(status == 0);
  std::ifstream in{said};
  int alone = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find("cannot find the session of its process") != std::string::npos) ++alone;
  }
  CHECK(alone == 3);
  CHECK(count_named(support::read_logs(run.path()), "Sfirst") > 0);
}
#endif
