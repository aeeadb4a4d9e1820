// Tests calls, callers and times of operations, in stats --style profile and in export --format
// pstats, whose result Python's pstats reads.
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "tool/json.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes calls in which Walk calls itself and Read. One call of Read has no caller, and another
/// overlaps only partly with Other.
void write_calls(const temp_dir& dir) {
  thread_logs thread;
  thread.operation("Read", 12, 4);
  thread.operation("Walk", 10, 10);  // has a self time of 6
  thread.operation("Walk", 0, 30);   // has a self time of 20
  thread.operation("Read", 40, 5);
  thread.operation("Other", 50, 10);
  thread.operation("Read", 55, 10);
  thread.write(dir, "", 1);
  thread_logs other;
  other.operation("Walk", 2, 8);
  other.write(dir, "", 2);
}

}  // namespace

TEST_CASE("stats --style profile prints calls and times as cProfile does") {
  const temp_dir dir;
  write_calls(dir);
  const result all = run({"stats", dir.path(), "--style", "profile"});
  INFO(all.out << all.err);
  REQUIRE(all.status == 0);
  CHECK(contains(all.out, "7 calls (6 primitive), 63.00 ms in total, on 2 threads"));
  CHECK(contains(
      all.out, "\ntottime: time without inner calls; cumtime: time with them (as in cProfile)\n"));
  CHECK(contains(all.out, "Walk          3/2  34.00 ms  11.33 ms  38.00 ms  19.00 ms"));
  CHECK(contains(all.out, "Read            3  19.00 ms  6.333 ms  19.00 ms  6.333 ms"));
  CHECK(contains(all.out, "Other           1  10.00 ms"));
  CHECK(all.out.find("Walk") < all.out.find("Read"));
  const result sorted =
      run({"stats", dir.path(), "--style", "profile", "--sort", "name", "--row-limit", "1"});
  CHECK(contains(sorted.out, "Other"));
  CHECK(!contains(sorted.out, "Walk"));
  for (const char* const unused : {"--json", "--per-worker", "--remove-outliers"}) {
    CHECK(run({"stats", dir.path(), "--style", "profile", unused}).status == 2);
  }
}

TEST_CASE("Python's pstats reads the exported file with callers") {
  if (std::system("python3 -c 'import pstats' 2>/dev/null") != 0) {
    lotus_test::skip("python3 is absent");
  }
  const temp_dir dir;
  write_calls(dir);
  const std::string file = dir.path() + "/run.prof";
  const result made = run({"export", dir.path(), "--format", "pstats", "-o", file});
  INFO(made.err);
  REQUIRE(made.status == 0);
  dir.file("read.py",
           "import json, pstats, sys\n"
           "stats = pstats.Stats(sys.argv[1]).stats\n"
           "ms = lambda t: [t[0], t[1], round(t[2] * 1e3, 6), round(t[3] * 1e3, 6)]\n"
           "print(json.dumps({f[2]: {'all': ms(t), 'by': {c[2]: ms(b) for c, b in t[4].items()}}\n"
           "                  for f, t in stats.items()}))\n");
  const std::string out = dir.path() + "/read.json";
  REQUIRE(std::system(
              ("python3 '" + dir.path() + "/read.py' '" + file + "' >'" + out + "'").c_str()) == 0);
  const json stats = parse_json(read_file(out));
  const auto check = [](const json& times, double primitive, double calls, double self_ms,
                        double total_ms) {
    CHECK(times[0].number() == primitive);
    CHECK(times[1].number() == calls);
    CHECK(times[2].number() == Approx(self_ms));
    CHECK(times[3].number() == Approx(total_ms));
  };
  check(stats["SWalk"]["all"], 2, 3, 34, 38);
  check(stats["SWalk"]["by"]["SWalk"], 1, 1, 6, 10);
  check(stats["SWalk"]["by"]["<all threads>"], 2, 2, 28, 38);
  check(stats["SRead"]["all"], 3, 3, 19, 19);
  check(stats["SRead"]["by"]["SWalk"], 1, 1, 4, 4);
  check(stats["SRead"]["by"]["<all threads>"], 2, 2, 15, 15);
  check(stats["SOther"]["all"], 1, 1, 10, 10);
  check(stats["<all threads>"]["all"], 1, 1, 0, 63);
}

TEST_CASE("runs that cannot be exported are reported in one line") {
  const temp_dir dir;
  dir.file("a/lotustrace_log_worker_pid_1", columns("SRead", 0, 5) + '\n');
  dir.file("b/lotustrace_log_worker_pid_1", columns("SRead", 0, 5) + '\n');
  const std::string file = dir.path() + "/run.prof";
  const result several = run({"export", dir.path(), "--format", "pstats", "-o", file});
  CHECK(several.status == 1);
  CHECK(contains(several.err, "holds several runs"));
  CHECK(run({"export", dir.path() + "/a", "--format", "pstats", "-o", ""}).status == 2);
  CHECK(run({"export", dir.path() + "/a", "-o", file}).status == 2);
  const temp_dir batches;
  batches.file("lotustrace_log_main_pid_1", columns("SBatchWait_0", 0, 5) + '\n');
  const result none = run({"export", batches.path(), "--format", "pstats", "-o", file});
  CHECK(none.status == 1);
  CHECK(contains(none.err, "no operations"));
}

TEST_CASE("threads with operations are counted once, whatever logs they have") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("log 9 3\n"));
  thread_logs both;  // a consumer that also builds batches
  both.operation("Read", 0, 4);
  both.wait(0, 5, 1);
  both.write(dir, "", 1);
  thread_logs worker;  // this worker's second recording has another log
  worker.operation("Read", 0, 4);
  worker.write(dir, "", 3);
  worker.write(dir, "", 9);
  thread_logs consumer;
  consumer.wait(1, 5, 1);
  consumer.write(dir, "", 2);
  const result reported = run({"stats", dir.path(), "--style", "profile"});
  INFO(reported.out << reported.err);
  CHECK(contains(reported.out, "3 calls, 12.00 ms in total, on 2 threads"));
}

TEST_CASE("counted operations are exported too, even if nothing was recorded") {
  const auto exported = [](bool recorded) {
    const temp_dir dir;
    if (recorded) write_calls(dir);
    dir.file(".lotus_aggregated_lotustrace_log_1",
             "\nbegin,5.0,4294967296\nSToken,1,3,60000000,50000000,10:1 25:2\nend,5.0,1\n");
    const result made = run({"export", dir.path(), "--format", "pstats", "-o", "-"});
    INFO(made.err);
    CHECK(made.status == 0);
    return made.out;
  };
  for (const bool recorded : {true, false})
    CHECK(contains(exported(recorded), "SToken (aggregated)"));
}
