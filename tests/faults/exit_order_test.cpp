// Tests scopes before, in and after main(), in a program that configures recording only by
// environment variables.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::read_logs;

namespace {

/// Runs the program exit_order, which does not call lotus::start(). Sets LOTUS_LOG_FILE to
/// `log_file`, or removes this variable if `log_file` is null. Returns the program's wait status.
int run_with_environment(const char* log_file, const char* argument = nullptr) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (log_file != nullptr) {
      setenv("LOTUS_LOG_FILE", log_file, 1);
    } else {
      unsetenv("LOTUS_LOG_FILE");
    }
    alarm(250);
    std::vector<std::string> words{"exit_order"};
    if (argument != nullptr) words.emplace_back(argument);
    support::exec_program(EXIT_ORDER_PROGRAM, words);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("with LOTUS_LOG_FILE, all from static constructors to static destructors is recorded") {
  const support::temp_directory run;
  CHECK(run_with_environment(run.prefix().c_str()) == 0);
  const auto lines = read_logs(run.path());
  for (const char* name : {"SStaticConstructor", "SThreadLocalConstructor", "SFunctionStatic",
                           "SMain", "SThread", "SLate", "SThreadLocalDestructor", "SAtExit",
                           "SFunctionStaticDestructor", "SStaticDestructor", "SLastOfAll"}) {
    CAPTURE(name);
    CHECK(count_named(lines, name) == 1);
  }
  CHECK(lines.size() == 11);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

TEST_CASE("nothing is recorded without LOTUS_LOG_FILE and without start") {
  const support::temp_directory run;
  CHECK(run_with_environment(nullptr) == 0);
  CHECK(run_with_environment("") == 0);
  CHECK(std::filesystem::is_empty(run.path()));
}

TEST_CASE("nothing is recorded after stop") {
  const support::temp_directory run;
  CHECK(run_with_environment(run.prefix().c_str(), "stop") == 0);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "SMain") == 1);
  CHECK(count_named(lines, "SThread") == 1);
  CHECK(count_named(lines, "SAfterStop") == 0);
  CHECK(count_named(lines, "SLate") == 0);
  CHECK(count_named(lines, "SStaticDestructor") == 0);
}

TEST_CASE("the program runs normally if LOTUS_LOG_FILE names a directory that cannot be created") {
  CHECK(run_with_environment("/proc/nowhere/log") == 0);
}

TEST_CASE("calling flush or dropped before the first scope does not disable LOTUS_LOG_FILE") {
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("LOTUS_LOG_FILE", run.prefix().c_str(), 1);
    lotus::flush();
    const bool none = lotus::dropped() == 0;
    { LOTUS_SCOPE("First"); }
    exit(none ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "SFirst") == 1);
}

TEST_CASE("an explicit start overrides LOTUS_LOG_FILE, even after scopes have run") {
  const support::temp_directory by_environment;
  const support::temp_directory by_choice;
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("LOTUS_LOG_FILE", by_environment.prefix().c_str(), 1);
    { LOTUS_SCOPE("Early"); }
    lotus::options o;
    o.log_file = by_choice.prefix();
    const bool started = lotus::start(o);
    { LOTUS_SCOPE("Chosen"); }
    exit(started ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  CHECK(count_named(read_logs(by_environment.path()), "SEarly") == 1);
  CHECK(read_logs(by_environment.path()).size() == 1);
  CHECK(count_named(read_logs(by_choice.path()), "SChosen") == 1);
}
