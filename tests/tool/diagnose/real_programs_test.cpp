// Tests diagnose with real programs: exactly the right checks must fail, and the capacities must
// agree with the programs' own measurements.
#include "tool/diagnose/planted/real_programs.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <deque>
#include <set>
#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// A program that runs, or has run, in a process of its own, with memory for its measurements.
struct recording {
  const real_program* of = nullptr;
  temp_dir folder{};
  measured* found = nullptr;
  pid_t pid = -1;
};

void start(recording& one) {
  void* const page =
      mmap(nullptr, sizeof(measured), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  one.found = work = new (page) measured;
  one.pid = fork();
  if (one.pid == 0) {
    alarm(250);
    if (one.of->before) one.of->before();
    lotus::options o;
    o.log_file = one.folder.path() + "/lotustrace_log";
    o.when_full = lotus::full_ring::drop;
    o.backlog_bytes = 0;
    o.ring_records = one.of->ring_records;
    o.on_message = [](const char*) {};
    if (!lotus::start(o)) _exit(1);
    one.of->record();
    lotus::stop();
    _exit(0);
  }
}

void end(recording& one) {
  int status = -1;
  waitpid(one.pid, &status, 0);
  INFO(one.of->name);
  CHECK(status == 0);
}

/// Records all programs that sleep, several at a time.
std::deque<recording> record_sleeping() {
  constexpr std::size_t most = 6;
  std::deque<recording> all;
  std::size_t ended = 0;
  for (const real_program& program : real_programs()) {
    if (program.computes) continue;
    if (all.size() - ended == most) end(all[ended++]);
    all.emplace_back().of = &program;
    start(all.back());
  }
  while (ended < all.size()) end(all[ended++]);
  return all;
}

std::set<std::string> failed_checks_of(const std::string& folder) {
  const result r = run_well({"stats", folder, "--json", "-q"});
  std::set<std::string> failed;
  const json document = parse_json(r.out);
  for (const json& one : document["runs"].array()) {
    for (const json& check : one["checks"].array()) failed.insert(check["id"].text());
  }
  return failed;
}

/// Returns whether the machine has delayed the program so much (for example by starting its threads
/// late) that the simulation does not reproduce the run and there is no verdict.
bool was_held_up(const result& diagnosis) {
  return contains(diagnosis.out, "The logs do not show what slows the run down");
}

result diagnosis_of(const recording& one) {
  return run({"diagnose", one.folder.path(), "--json", "-q"});
}

/// Returns whether a program that was recorded at the same time as others must be recorded alone.
bool must_be_alone(const recording& one) {
  const result d = diagnosis_of(one);
  const std::string expected = "\"verdict\":\"" + one.of->verdict + '"';
  return was_held_up(d) || (!one.of->verdict.empty() && !contains(d.out, expected));
}

void judge(const recording& one) {
  const real_program& program = *one.of;
  std::set<std::string> failed = failed_checks_of(one.folder.path());
  const result d = diagnosis_of(one);
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
        Approx(program.slots * one.found->per_s()).epsilon(0.03));
}

}  // namespace

TEST_CASE("real programs of every shape get the right checks and capacities") {
  std::deque<recording> all = record_sleeping();
  for (const real_program& program : real_programs()) {
    if (program.computes) all.emplace_back().of = &program;
  }
  for (const recording& first : all) {
    INFO(first.of->name);
    if (!first.of->computes && !must_be_alone(first)) {
      judge(first);
      continue;
    }
    for (int more = 8;; --more) {
      recording again;
      again.of = first.of;
      start(again);
      end(again);
      if (more > 0 && was_held_up(diagnosis_of(again))) continue;
      judge(again);
      break;
    }
  }
}
