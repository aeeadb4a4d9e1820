// Tests when and for how long the text output says that the threads of a chain were waited for, and
// that a chain whose times contradict each other is not shown.
#include <string>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"
#include "tool/tool_test.hpp"
#include "written_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

/// A program of one second: main waits for 0.6 s for a worker, which lives for `life_ms`.
written_samples joined_worker(int life_ms) {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  if (life_ms < 1000) of.short_thread(worker, 0, life_ms);
  const int joins = of.waits(main, {libc + "pthread_join", "process:8", main_started}, "condition",
                             16, written_samples::tid(worker), "the end of a thread");
  of.runs(worker, {"trim:40", "worker_task:41", started}, 90);
  for (int at_ms = 120; at_ms < 180; ++at_ms) of.moment(at_ms, {{main, joins}, {worker, -1}});
  return of;
}

}  // namespace

TEST_CASE("below the headline, each hop of the chain has its begin and its time") {
  const written_samples of = joined_worker(1000);
  CHECK(contains(of.threads().out,
                 "  chain of waits                       @ first seen  + in total\n"
                 "  main thread (waiting)                     @0.12 s     +0.60 s\n"
                 "  1 thread in `worker_task` (working)       @0.12 s     +0.60 s\n"));
  written_samples alone;
  alone.runs(alone.thread("prog"), {"trim:40", main_started}, 90);
  CHECK_FALSE(contains(alone.threads().out, "chain of waits"));
}

TEST_CASE("a hop that was not seen together with the one before has no times") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  of.waits(main, {libc + "pthread_join", "process:8", main_started}, "condition", 16,
           written_samples::tid(worker), "the end of a thread");
  of.runs(worker, {"trim:40", "worker_task:41", started}, 90);
  CHECK(contains(of.threads().out,
                 "  main thread (waiting)                           -     +0.60 s\n"
                 "  1 thread in `worker_task` (working)             -           -\n"));
}

TEST_CASE("nobody is waited for longer than it existed") {
  // By the samples it was 0.6 s, which may be wrong by a factor of two.
  const json found = joined_worker(400).found();
  const std::vector<json> chain = found["chain"].array();
  REQUIRE(chain.size() == 2);
  CHECK(chain[1]["seconds"].number() == 0.4);
}

TEST_CASE("a chain whose times contradict each other is not shown") {
  const written_samples of = joined_worker(1);
  const temp_dir dir;
  of.write(dir);
  const result printed = run({"threads", dir.path()});
  CHECK(printed.status == 0);
  CHECK(printed.err == "warning: " + dir.path() +
                           ": the samples of the threads contradict each other, so the chain of "
                           "waits is not shown. Please report this with the files "
                           ".lotus_threads_*\n");
  CHECK(printed.out.find("  threads (% of their time)") == 0);
  CHECK(parse_json(run({"threads", dir.path(), "--json"}).out)["chain"].array().empty());
}

TEST_CASE("groups whose parts do not add up have no chain") {
  thread_activity main;
  main.is_main = true;
  main.time_s = 1;
  main.running = 0.25;
  main.blocked.emplace_back().share = 0.75;
  const thread_samples none;
  CHECK(wait_chain(none, {main}, 0).size() == 1);
  main.blocked.front().share = 0.7;
  CHECK(wait_chain(none, {main}, 0).empty());
}
