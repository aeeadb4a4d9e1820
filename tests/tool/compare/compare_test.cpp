#include "commands/compare.hpp"

#include <cstddef>
#include <string>

#include "base/errors.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using lotus::tool::parse_share;
using lotus::tool::usage_error;

namespace {

/// Writes a run in which each call of Loader takes about `loader` ns.
void write_run(const temp_dir& dir, const std::string& name, int loader) {
  std::string log;
  for (int i = 0; i < 200; ++i) {
    log += "SLoader," + std::to_string(1000000 + i * 10000) + ',' + std::to_string(loader + i % 7) +
           '\n';
    log += "SCrop," + std::to_string(1005000 + i * 10000) + ",500\n";
  }
  dir.file(name + "/lotustrace_log_worker_pid_1", log + "SBatchPreprocessed_0,1000,5000\n");
}

}  // namespace

TEST_CASE("a run compared with itself has no slower operation") {
  const result r =
      run({"compare", traces() + "/c_ooo_w4", traces() + "/c_ooo_w4", "--fail-above", "0%"});
  CHECK(r.status == 0);
  CHECK(contains(r.out, "  Loader "));
  CHECK_FALSE(contains(r.out, "SLOWER"));
}

TEST_CASE("a note about a log is printed once, although both sides read the log") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SLoad,1000,100\nSLo");
  const result r = run({"compare", dir.path(), dir.path()});
  const std::size_t first = r.err.find("incomplete last line");
  REQUIRE(first != std::string::npos);
  CHECK(r.err.find("incomplete last line", first + 1) == std::string::npos);
}

TEST_CASE("--fail-above fails if an operation became slower than allowed") {
  const temp_dir dir;
  write_run(dir, "a", 1000);
  write_run(dir, "b", 1100);
  const std::string a = dir.path() + "/a";
  const std::string b = dir.path() + "/b";
  CHECK(run({"compare", a, b}).status == 0);
  CHECK(run({"compare", a, b, "--fail-above", "5%"}).status == 3);
  CHECK(run({"compare", a, b, "--fail-above", "0.05"}).status == 3);
  CHECK(run({"compare", a, b, "--fail-above", "15%"}).status == 0);
  CHECK(run({"compare", b, a, "--fail-above", "5%"}).status == 0);
  const auto document = parse_json(run({"compare", a, b, "--fail-above", "5%", "--json"}).out);
  REQUIRE(document["slower"].size() == 1);
  CHECK(document["slower"][0].text() == "SLoader");
  const auto& loader = document["rows"][0];
  CHECK(loader["change"].number() == Approx(100.0 / 1002.99).epsilon(0.001));
  CHECK(loader["low"].number() > 0.09);
  CHECK(loader["high"].number() < 0.11);
  CHECK(document["rows"][1]["change"].number() == 0);
}

TEST_CASE("an operation that only one run has is listed without a change") {
  const temp_dir dir;
  dir.file("a/lotustrace_log_worker_pid_1", "SBoth,1,5\nSOld,1,5\n");
  dir.file("b/lotustrace_log_worker_pid_1", "SBoth,1,5\nSNew,1,5\n");
  const auto document =
      parse_json(run({"compare", dir.path() + "/a", dir.path() + "/b", "--json"}).out);
  CHECK(document["rows"][1]["change"].is_null());
  CHECK(document["rows"][2]["name"].text() == "SNew");
  dir.file("c/lotustrace_log_worker_pid_1", "SOther,1,5\n");
  CHECK(run({"compare", dir.path() + "/a", dir.path() + "/c"}).status == 1);
}

TEST_CASE(
    "--fail-above ignores an operation with few values, but not one that took no time before") {
  const temp_dir dir;
  const auto write = [&](const std::string& name, int count, const std::string& duration) {
    std::string log;
    for (int i = 0; i < count; ++i) log += "SIndex," + std::to_string(i) + ',' + duration + '\n';
    dir.file(name + "/lotustrace_log_worker_pid_1", log);
  };
  write("once", 1, "100");
  write("once_slower", 1, "200");
  write("nothing", 5, "0");
  write("something", 5, "50");
  const auto compare = [&](const char* a, const char* b) {
    return run({"compare", dir.path() + '/' + a, dir.path() + '/' + b, "--fail-above", "5%"});
  };
  const result once = compare("once", "once_slower");
  CHECK(once.status == 0);
  CHECK(contains(once.out, "2x"));
  CHECK_FALSE(contains(once.out, ".."));
  const result more = compare("nothing", "something");
  CHECK(more.status == 3);
  CHECK(contains(more.out, "SLOWER"));
  CHECK(compare("nothing", "nothing").status == 0);
  const result unset = run({"compare", dir.path(), dir.path(), "--fail-above", ""});
  CHECK(unset.status == 2);
  CHECK(contains(unset.err, "--fail-above"));
}

TEST_CASE("--fail-above ignores a longer delay") {
  const temp_dir dir;
  for (const std::string run_dir : {"a", "b"}) {
    dir.file(run_dir + "/lotustrace_log_worker_pid_1", "SBatchPreprocessed_0,1000,5000\n");
    dir.file(run_dir + "/lotustrace_log_main_pid_1",
             std::string("SBatchConsumed_0,") + (run_dir == "a" ? "7000" : "90000") + ",1000\n");
  }
  const std::string a = dir.path() + "/a";
  CHECK(run({"compare", a, dir.path() + "/b", "--fail-above", "5%"}).status == 0);
}

TEST_CASE("--fail-above does not fail for a slower operation if throughput rose") {
  constexpr std::int64_t ms = 1'000'000;
  const temp_dir dir;
  // Writes a run in which each of the workers loads a batch in `load` ms, all at the same time.
  const auto write = [&](const std::string& name, int workers, std::int64_t load) {
    std::string consumer;
    std::vector<std::string> logs(static_cast<std::size_t>(workers));
    for (int i = 0; i < 60; ++i) {
      const std::int64_t start = 1 + i / workers * load * ms;
      const std::string times =
          ',' + std::to_string(start) + ',' + std::to_string(load * ms) + '\n';
      const std::string number = std::to_string(i);
      logs[static_cast<std::size_t>(i % workers)] +=
          "SLoad" + times + "SBatchPreprocessed_" + number + times;
      const std::string end = std::to_string(start + load * ms + i % workers * 1000);
      consumer += "SBatchWait_" + number + ',' + std::to_string(start + 1) + ',' +
                  std::to_string(load * ms - 1) + '\n';
      consumer += "SBatchConsumed_" + number + ',' + end + ",1\n";
    }
    for (std::size_t w = 0; w < logs.size(); ++w) {
      dir.file(name + "/lotustrace_log_worker_pid_" + std::to_string(w + 2), logs[w]);
    }
    dir.file(name + "/lotustrace_log_main_pid_1", consumer);
  };
  write("one", 1, 10);
  write("two", 2, 13);
  write("slower", 1, 13);
  const auto compare = [&](const char* a, const char* b) {
    return run({"compare", dir.path() + '/' + a, dir.path() + '/' + b, "--fail-above", "5%"});
  };
  const result faster = compare("one", "two");
  INFO(faster.out);
  CHECK(faster.status == 0);
  CHECK(contains(faster.out, "Passed (--fail-above 5 %) although slower: Load, preprocess"));
  CHECK(contains(faster.out, "the runs differ in the number of workers: 1 before, 2 after"));
  const result slower = compare("one", "slower");
  CHECK(slower.status == 3);
  CHECK(contains(slower.out, "Failed (--fail-above 5 %), slower: Load, preprocess"));
  const result same = compare("one", "one");
  CHECK(same.status == 0);
  CHECK(contains(same.out, "Passed (--fail-above 5 %): nothing became slower."));
  CHECK(contains(same.err, "/one: compared with itself"));
}

TEST_CASE("shares are parsed, and invalid ones are incorrect use") {
  CHECK(parse_share("5%", "x") == Approx(0.05));
  CHECK(parse_share("2.5 %", "x") == Approx(0.025));
  CHECK(parse_share("0.05", "x") == Approx(0.05));
  for (const auto* text : {"", "%", "five", "-5%", "5%%", "nan", "5"}) {
    CHECK_THROWS_AS(parse_share(text, "x"), usage_error);
  }
  CHECK(run({"compare", "a"}).status == 2);
  CHECK(run({"compare", "--a", "a"}).status == 2);
  CHECK(run({"compare", "a", "b", "--b", "c"}).status == 2);
}

TEST_CASE("of very many operations, those with the most time in all runs are compared") {
  const temp_dir dir;
  for (const char side : {'a', 'b'}) {
    std::string log;
    for (int i = 0; i < 10'500; ++i) {
      log += "SFile" + std::to_string(i) + ',' + std::to_string(1000 + 20'000 * i) + ',' +
             std::to_string(1000 + i) + '\n';
    }
    // An operation with an escaped name that only one of the runs has.
    if (side == 'b') log += "SRead%2CIt,900000000,500000\n";
    dir.file(std::string(1, side) + "/lotustrace_log_worker_pid_1", log);
  }
  const result r = run({"compare", dir.path() + "/a", dir.path() + "/b", "--json"});
  CHECK(r.status == 0);
  CHECK(
      contains(r.err, "note: of 10501 operations, only the 10000 with the most time are compared"));
  CHECK_FALSE(contains(r.out, "\"SFile500\""));
  CHECK(contains(r.out, "\"SFile501\""));
  CHECK(contains(r.out, "\"SFile10499\""));
  CHECK(contains(r.out, "\"SRead,It\""));
}
