// Tests diagnose with real programs: exactly the right checks must fail, and the capacities must
// agree with the programs' own measurements.
#include "tool/diagnose/real_programs.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <set>
#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Points `work` to new memory for measurements, then runs a program in a new process.
void record(const real_program& program, const std::string& folder) {
  void* const page =
      mmap(nullptr, sizeof(measured), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  work = new (page) measured;
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    if (program.before) program.before();
    lotus::options o;
    o.log_file = folder + "/lotustrace_log";
    o.when_full = lotus::full_ring::drop;
    o.backlog_bytes = 0;
    o.ring_records = program.ring_records;
    o.on_message = [](const char*) {};
    if (!lotus::start(o)) _exit(1);
    program.record();
    lotus::stop();
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
}

std::set<std::string> failed_checks_of(const std::string& folder) {
  const result r = run({"stats", folder, "--json", "-q"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  std::set<std::string> failed;
  const json document = parse_json(r.out);
  for (const json& one : document["runs"].array()) {
    for (const json& check : one["checks"].array()) failed.insert(check["id"].text());
  }
  return failed;
}

/// Returns whether the machine has delayed the program so much (for example by starting its threads
/// late) that the simulation does not reproduce the run and there is no verdict.
bool was_held_up(const std::string& folder) {
  const result d = run({"diagnose", folder, "--json", "-q"});
  return contains(d.out, "its logs do not show what slows it down");
}

void judge(const real_program& program, const std::string& folder) {
  std::set<std::string> failed = failed_checks_of(folder);
  const result d = run({"diagnose", folder, "--json", "-q"});
  INFO(d.out);
  for (const std::string& id : program.checks) {
    INFO("must fail: " << id);
    CHECK(failed.count(id) == 1);
    failed.erase(id);
  }
  for (const std::string& id : program.may) failed.erase(id);
  failed.erase("oversubscribed");  // other programs on this machine may be the cause
  CHECK(failed.empty());
  if (program.slots == 0) return;
  REQUIRE(d.status == 0);
  const json answer = parse_json(d.out);
  if (!program.verdict.empty()) CHECK(answer["verdict"].text() == program.verdict);
  CHECK(answer["preprocessing_capacity"].number() ==
        Approx(program.slots * work->per_s()).epsilon(0.03));
}

}  // namespace

TEST_CASE("real programs of every shape get the right checks and capacities") {
  for (const real_program& program : real_programs()) {
    INFO(program.name);
    for (int more = 8;; --more) {
      const temp_dir folder;
      record(program, folder.path());
      if (more > 0 && was_held_up(folder.path())) continue;
      judge(program, folder.path());
      break;
    }
  }
}
