#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

std::vector<std::string> drawn(const std::string& dir, std::vector<std::string> more) {
  const temp_dir to;
  const std::string path = to.path() + "/viz.json";
  std::vector<std::string> arguments{"viz", dir, "--compat", "-o", path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run_well(arguments);
  return sorted_events(read_file(path));
}

}  // namespace

TEST_CASE("--compat draws a small run as the original does") {
  // The expected text was written by hand according to the rules of the original LotusTrace: pid
  // and tid are from the log's name, times are whole microseconds, the id of batch i is -1-i, and
  // the arrow begins at the start of the preprocessing.
  const std::string expected = R"({"traceEvents": [
    {"ph":"X","cat":"user_annotation","name":"SBatchWait_0","pid":100,"tid":100,
     "args":{"External id":-1,"correlation":-1},"ts":1699999999990000,"dur":12900},
    {"ph":"X","cat":"user_annotation","name":"SBatchConsumed_0","pid":100,"tid":100,
     "args":{"External id":-1,"correlation":-1},"ts":1700000000002950,"dur":1},
    {"ph":"f","id":-1,"pid":100,"tid":100,"ts":1700000000002950,"cat":"ac2g","name":"ac2g","bp":"e"},
    {"ph":"X","cat":"user_annotation","name":"SRandomResizedCrop","pid":101,"tid":101,"args":{},
     "ts":1700000000000003,"dur":2500},
    {"ph":"X","cat":"user_annotation","name":"SToTensor","pid":101,"tid":101,"args":{},
     "ts":1700000000002600,"dur":0},
    {"ph":"X","cat":"user_annotation","name":"SLoader","pid":101,"tid":101,"args":{},
     "ts":1700000000000000,"dur":3},
    {"ph":"X","cat":"user_annotation","name":"STransform","pid":101,"tid":101,"args":{},
     "ts":1700000000000003,"dur":2600},
    {"ph":"X","cat":"user_annotation","name":"SCollation","pid":101,"tid":101,"args":{},
     "ts":1700000000002700,"dur":50},
    {"ph":"X","cat":"user_annotation","name":"SBatchPreprocessed_0","pid":101,"tid":101,
     "args":{"External id":-1,"correlation":-1},"ts":1700000000000000,"dur":2800},
    {"ph":"s","id":-1,"pid":101,"tid":101,"ts":1700000000000000,"cat":"ac2g","name":"ac2g"}]})";
  CHECK(drawn(traces() + "/quirks/good", {}) == sorted_events(expected));
  CHECK(drawn(traces() + "/quirks/good", {"--coarse"}).size() == 5);
}

TEST_CASE("--compat omits what the original omits") {
  CHECK(drawn(traces() + "/quirks/queued_lines", {}).size() == 10);
  CHECK(drawn(traces() + "/quirks/op_class_named_Batch", {}).size() == 10);
}

TEST_CASE("--compat shows names as they are logged") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SA%2Cb,1000,2000\n");
  const auto events = drawn(dir.path(), {});
  REQUIRE(events.size() == 1);
  CHECK(contains(events[0], "\"SA%2Cb\""));
}

TEST_CASE("--compat draws the batches of a real run as the original did") {
  const std::string run_dir = traces() + "/c_ooo_w4";
  CHECK(drawn(run_dir, {"--coarse"}) ==
        sorted_events(read_file(run_dir + "/expected/viz_coarse.lotustrace")));
}

TEST_CASE("--compat draws all real runs as the original did") {
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent");
    return;
  }
  for (const auto* name : {"a_preproc_w1", "c_ooo_w4", "d_consumer_w2", "h_epochs2_w2"}) {
    const std::string run_dir = shared_traces() + '/' + name;
    INFO(run_dir);
    CHECK(drawn(run_dir, {}) ==
          sorted_events(read_file(run_dir + "/expected/viz_fine.lotustrace")));
    CHECK(drawn(run_dir, {"--coarse"}) ==
          sorted_events(read_file(run_dir + "/expected/viz_coarse.lotustrace")));
  }
}
