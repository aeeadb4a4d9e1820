#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace {

/// Runs ten steps, each with one scope, and returns the names of the steps that were recorded.
std::vector<std::string> recorded_steps(const support::temp_directory& run,
                                        const lotus::schedule& steps) {
  REQUIRE(lotus::start(run.prefix(), steps));
  for (int i = 0; i < 10; ++i) {
    { LOTUS_SCOPE_DYNAMIC("step " + std::to_string(i)); }
    lotus::step();
  }
  lotus::stop();
  std::vector<std::string> names;
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    for (const support::log_line& l : support::read_logs(entry.path())) {
      names.push_back(entry.path().filename().string() + ": " + l.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("a schedule records the active steps of each cycle into a directory of its own") {
  const support::temp_directory run;
  CHECK(recorded_steps(run, {1, 1, 2, 2}) == names{"steps_2_3: Sstep 2", "steps_2_3: Sstep 3",
                                                   "steps_6_7: Sstep 6", "steps_6_7: Sstep 7"});
}

TEST_CASE("skip_first skips steps, and cycles without wait follow each other directly") {
  const support::temp_directory run;
  CHECK(recorded_steps(run, {0, 0, 2, 2, 3}) == names{"steps_3_4: Sstep 3", "steps_3_4: Sstep 4",
                                                      "steps_5_6: Sstep 5", "steps_5_6: Sstep 6"});
}

TEST_CASE("skip_first_wait omits the wait of the first cycle only") {
  const auto steps = [](lotus::schedule of) {
    of.skip_first_wait = 1;
    const support::temp_directory run;
    return recorded_steps(run, of);
  };
  // The expected steps are those for which torch.profiler.schedule returns RECORD.
  CHECK(steps({3, 1, 1}) == names{"steps_1_1: Sstep 1", "steps_6_6: Sstep 6"});
  CHECK(steps({3, 1, 1, 1}) == names{"steps_1_1: Sstep 1"});
  CHECK(steps({4, 0, 2, 2, 1}) == names{"steps_1_2: Sstep 1", "steps_1_2: Sstep 2",
                                        "steps_7_8: Sstep 7", "steps_7_8: Sstep 8"});
}

TEST_CASE("a schedule without repeat continues until the last step") {
  const support::temp_directory run;
  CHECK(recorded_steps(run, {3, 0, 2}) == names{"steps_3_4: Sstep 3", "steps_3_4: Sstep 4",
                                                "steps_8_9: Sstep 8", "steps_8_9: Sstep 9"});
}

TEST_CASE("on_trace_ready gets each directory once all of it is written, also at stop") {
  const support::temp_directory run;
  std::vector<std::string> reported;
  lotus::schedule steps{0, 0, 2, 0};
  steps.on_trace_ready = [&](const std::string& folder) {
    reported.push_back(support::fs::path(folder).filename().string() + ' ' +
                       std::to_string(support::read_logs(folder).size()));
    LOTUS_SCOPE("Told");  // belongs to the next active range, if one has begun
  };
  REQUIRE(lotus::start(run.prefix(), steps));
  for (int i = 0; i < 5; ++i) {
    { LOTUS_SCOPE("Step"); }
    lotus::step();
  }
  { LOTUS_SCOPE("Step"); }
  lotus::stop();
  lotus::stop();
  CHECK(reported == names{"steps_0_1 2", "steps_2_3 3", "steps_4_5 3"});
}

TEST_CASE("step() passes on an exception of on_trace_ready, and the schedule continues") {
  const support::temp_directory run;
  lotus::schedule steps{1, 0, 1, 2};
  steps.on_trace_ready = [](const std::string&) { throw std::runtime_error("no room"); };
  REQUIRE(lotus::start(run.prefix(), steps));
  lotus::step();
  CHECK_THROWS_AS(lotus::step(), std::runtime_error);
  lotus::step();
  { LOTUS_SCOPE("Third"); }
  CHECK_THROWS_AS(lotus::stop(), std::runtime_error);
  CHECK(support::read_logs(run.path() / "steps_3_3").size() == 1);
}

TEST_CASE("start rejects a schedule without active steps, and step() without one does nothing") {
  const support::temp_directory run;
  CHECK_FALSE(lotus::start(run.prefix(), lotus::schedule{1, 1, 0}));
  lotus::step();
  REQUIRE(lotus::start(run.prefix()));
  lotus::step();
  { LOTUS_SCOPE("All"); }
  lotus::stop();
  CHECK(support::read_logs(run.path()).size() == 1);
}

TEST_CASE("start() without a schedule ends the previous schedule") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix(), lotus::schedule{5, 0, 1}));
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 10; ++i) {
    { LOTUS_SCOPE("All"); }
    lotus::step();
  }
  lotus::stop();
  CHECK(support::read_logs(run.path()).size() == 10);
}

TEST_CASE("a process forked in a cycle records into the cycle's directory, and steps on its own") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix(), lotus::schedule{1, 0, 1, 1}));
  lotus::step();
  const pid_t child = fork();
  if (child == 0) {
    { LOTUS_SCOPE("Child"); }
    lotus::step();
    { LOTUS_SCOPE("Child later"); }
    lotus::stop();
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  { LOTUS_SCOPE("Parent"); }
  lotus::step();
  lotus::stop();
  const auto lines = support::read_logs(run.path() / "steps_1_1");
  CHECK(lines.size() == 2);
  CHECK(support::count_named(lines, "SChild") == 1);
}
