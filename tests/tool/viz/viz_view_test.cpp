// Tests the options of viz that select what is drawn, and its counters.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "catch.hpp"
#include "commands/viz/view.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;
using lotus::tool::parse_duration_ns;
using lotus::tool::parse_window_end;
using lotus::tool::usage_error;

namespace {

/// Writes a run with one worker and four batches. Building batch i begins i seconds after the start
/// of the run, and takes 500 + i ms, in two operations. 800 ms after this begin, the batch is
/// received, after a wait of 100 ms.
std::string four_batches(const temp_dir& dir) {
  std::string worker;
  std::string main;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 1'000'000'000LL * (i + 1);
    const std::string start = std::to_string(at);
    const std::string index = std::to_string(i);
    worker += "SLoader," + start + ",200000000\n";
    worker += "SCrop," + std::to_string(at + 200'000'000) + ",100000000\n";
    worker += "SBatchPreprocessed_" + index + ',' + start + ',' +
              std::to_string(500'000'000 + i * 1'000'000) + '\n';
    main += "SBatchWait_" + index + ',' + std::to_string(at + 700'000'000) + ",99000000\n";
    main += "SBatchConsumed_" + index + ',' + std::to_string(at + 800'000'000) + ",1000\n";
  }
  dir.file("lotustrace_log_main_pid_1", main);
  dir.file("lotustrace_log_worker_pid_2", worker);
  return dir.path();
}

std::vector<std::string> slices(const std::string& dir, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"viz", dir, "-o", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run_well(arguments);
  std::vector<std::string> names;
  std::map<std::int64_t, int> flows;
  const auto document = parse_json(r.out);
  for (const auto& event : document["traceEvents"].array()) {
    const std::string phase = event["ph"].text();
    const bool is_recorded =
        phase == "X" && event["cat"].text() != "path" && event["cat"].text() != "verdict";
    if (is_recorded) names.push_back(numbered(event));
    if (phase == "s" || phase == "f") ++flows[event["id"].integer()];
  }
  for (const auto& [id, ends] : flows) CHECK(ends == 2);
  std::sort(names.begin(), names.end());
  return names;
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("a window in seconds keeps all slices that overlap it") {
  const temp_dir dir;
  four_batches(dir);
  CHECK(slices(dir.path(), {}).size() == 20);
  CHECK(slices(dir.path(), {"--from", "2.9", "--to", "3.1"}) ==
        names{"BatchPreprocessed_3", "Loader", "step_2"});
  CHECK(slices(dir.path(), {"--to", "100ms"}) == names{"BatchPreprocessed_0", "Loader"});
  const result beyond = run({"viz", dir.path(), "-o", "-", "--from", "10"});
  CHECK(beyond.status == 2);
  CHECK(beyond.err ==
        "lotus-tool: nothing was recorded in this part of the run; the run takes 3.800 s\n");
  CHECK(run({"viz", dir.path(), "-o", "-", "--from", "3", "--to", "2"}).err ==
        "lotus-tool: --to is before --from\n");
}

TEST_CASE("a window in batches keeps these batches completely") {
  const temp_dir dir;
  four_batches(dir);
  const names one = slices(dir.path(), {"--from", "batch:1", "--to", "batch:1"});
  CHECK(std::count(one.begin(), one.end(), "BatchPreprocessed_1") == 1);
  CHECK(std::count(one.begin(), one.end(), "step_1") == 1);
  CHECK(std::count(one.begin(), one.end(), "BatchPreprocessed_0") == 0);
  CHECK(std::count(one.begin(), one.end(), "BatchPreprocessed_3") == 0);
  CHECK(slices(dir.path(), {"--from", "batch:0/2"}) == slices(dir.path(), {"--from", "batch:2"}));
  CHECK(run({"viz", dir.path(), "-o", "-", "--from", "batch:9"}).status == 2);
}

TEST_CASE("runs without batches of the window are skipped, and others are drawn") {
  const temp_dir dir;
  four_batches(dir);
  const std::string short_run = dir.path() + "/short";
  dir.file("short/lotustrace_log_worker_pid_9", "SBatchPreprocessed_0,1000000000,5\n");
  const result r = run({"viz", dir.path(), "-o", "-", "--from", "batch:2"});
  CHECK(r.status == 0);
  CHECK(contains(r.err, short_run + ": skipped"));
  CHECK(named(parse_json(r.out), "BatchPreprocessed_3").size() == 1);
}

TEST_CASE("--op takes one value at a time, and an empty value of an option is incorrect use") {
  const temp_dir dir;
  four_batches(dir);
  CHECK(run({"viz", "--op", "Loader", dir.path(), "-o", "-"}).status == 0);
  for (const char* option : {"--from", "--to", "--last"}) {
    const result r = run({"viz", dir.path(), "-o", "-", option, ""});
    CHECK(r.status == 2);
    CHECK(contains(r.err, option));
  }
}

TEST_CASE("--last draws the last part of a run") {
  const temp_dir dir;
  four_batches(dir);
  CHECK(slices(dir.path(), {"--last", "50ms"}) == names{"BatchWait_3", "step_3"});
  CHECK(run({"viz", dir.path(), "-o", "-", "--last", "0"}).status == 2);
}

TEST_CASE("--op draws only the chosen operations, and all batches") {
  const temp_dir dir;
  four_batches(dir);
  for (const auto* op : {"Crop", "Crop"}) {
    const names shown = slices(dir.path(), {"--op", op});
    CHECK(std::count(shown.begin(), shown.end(), "Crop") == 4);
    CHECK(std::count(shown.begin(), shown.end(), "Loader") == 0);
    CHECK(std::count(shown.begin(), shown.end(), "BatchPreprocessed_0") == 1);
  }
  const std::string out = dir.path() + "/out.json";
  const result mistyped = run({"viz", dir.path(), "-o", out, "--op", "Crop", "--op", "lode"});
  CHECK(mistyped.status == 1);
  CHECK(contains(mistyped.err,
                 "--op: no operation 'lode' in this part of the run; did you mean 'Loader'?"));
  CHECK_FALSE(std::filesystem::exists(out));
  const result nonsense = run({"viz", dir.path(), "-o", out, "--op", "Nonsense"});
  CHECK(nonsense.status == 1);
  CHECK(contains(nonsense.err, "there are Loader, Crop"));
  // Crop occurs in the run, but not in the last millisecond, which is the window.
  const result elsewhere = run({"viz", dir.path(), "-o", out, "--op", "Crop", "--last", "1ms"});
  CHECK(elsewhere.status == 0);
  CHECK(contains(elsewhere.err, "no operation of that name in this part of the run"));
}

TEST_CASE("--only-slowest N draws the slowest batches with their operations") {
  const temp_dir dir;
  four_batches(dir);
  CHECK(slices(dir.path(), {"--only-slowest", "1"}) ==
        names{"BatchPreprocessed_3", "BatchWait_3", "Crop", "Loader", "step_3"});
  CHECK(run({"viz", dir.path(), "-o", "-", "--only-slowest", "0"}).status == 2);
  CHECK(slices(dir.path(), {"--only-slowest", "100"}).size() == 20);
}

TEST_CASE("counters show the ready batches and the busy workers") {
  const temp_dir dir;
  four_batches(dir);
  const auto document = parse_json(run({"viz", dir.path(), "-o", "-", "--coarse"}).out);
  std::map<std::string, std::vector<std::pair<double, std::int64_t>>> counters;
  for (const auto& event : document["traceEvents"].array()) {
    if (event["ph"].text() != "C") continue;
    counters[event["name"].text()].emplace_back(event["ts"].number(),
                                                event["args"]["value"].integer());
  }
  const auto& busy = counters["workers busy"];
  const auto& ready = counters["batches ready"];
  REQUIRE(busy.size() == 8);
  REQUIRE(ready.size() == 8);
  CHECK(busy[0] == std::make_pair(0.0, std::int64_t{1}));
  CHECK(busy[1] == std::make_pair(500000.0, std::int64_t{0}));
  CHECK(ready[0] == std::make_pair(500000.0, std::int64_t{1}));
  CHECK(ready[1] == std::make_pair(800000.0, std::int64_t{0}));
}

TEST_CASE("times and batches are parsed, and invalid ones are rejected") {
  CHECK(parse_duration_ns("2.5", "--last") == 2'500'000'000);
  CHECK(parse_duration_ns("2.5s", "--last") == 2'500'000'000);
  CHECK(parse_duration_ns("300ms", "--last") == 300'000'000);
  CHECK(parse_duration_ns("7us", "--last") == 7'000);
  CHECK(parse_duration_ns("2m", "--last") == 120'000'000'000);
  for (const auto* text : {"", "s", "x", "-1", "1h", "1e300", "nan", "inf", "5 s"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_duration_ns(text, "--last"), usage_error);
  }
  CHECK(parse_window_end("batch:12", "--from").batch == 12);
  CHECK(parse_window_end("batch:3/12", "--from").epoch == 3);
  for (const auto* text :
       {"batch:", "batch:x", "batch:-1", "batch:1/", "batch:/1", "batch:1/2/3"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_window_end(text, "--from"), usage_error);
  }
}

TEST_CASE("--compat draws everything, and therefore accepts no filter") {
  const temp_dir dir;
  four_batches(dir);
  CHECK(run({"viz", dir.path(), "-o", "-", "--compat", "--last", "1"}).status == 2);
}
