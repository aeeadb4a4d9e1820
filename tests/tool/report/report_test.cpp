// Tests the contents of the report's page, and how it escapes texts.
#include "commands/report/report.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "commands/report/base64.hpp"
#include "lotus/format/varint.hpp"
#include "report_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using lotus::detail::put_varint;
using lotus::detail::varint_bytes;
using lotus::tool::base64;
using lotus::tool::script_safe;

TEST_CASE("no data can end the page's script element") {
  CHECK(script_safe("a</script><!--&") == "a\\u003c/script\\u003e\\u003c!--\\u0026");
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  CHECK(script_safe("\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA") == "\\u2028\\u2029\xE2\x80\xAA");
  CHECK(script_safe("\xE2\x80") == "\xE2\x80");
}

TEST_CASE("base64 encodes the examples of RFC 4648, section 10") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("the page is one file that loads nothing from elsewhere") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  const std::string text = read_file(page);
  CHECK(contains(text, "default-src 'none'"));
  CHECK_FALSE(contains(text, "<link"));
  CHECK_FALSE(contains(text, " src="));
  for (const auto* key : {"@FIRST@", "@FIRST_SCRIPT@", "@DATA@", "@SCRIPT@"}) {
    CHECK_FALSE(contains(text, key));
  }
  const json first = page_data(page, "first");
  CHECK(first["runs"][0]["verdict"]["verdict"].text() == "preprocessing-bound");
  CHECK(first["titles"]["ops"]["run_queue_ns"].text() == "waits for CPU");
  CHECK(first["titles"]["stages"]["starved"].text() == "no input");
  const json data = page_data(page);
  const auto& run_data = data["runs"][0];
  CHECK(run_data["ops"].size() == 7);
  CHECK(run_data["waits_ns"].size() == 75);
  CHECK(run_data["timeline"]["tracks"].size() == 5);
  CHECK(run_data["timeline"]["arrows"].size() == 75);
}

TEST_CASE("timeline arrows lead from stage to stage and to the consumer") {
  const temp_dir dir;
  dir.file("run/lotustrace_log_main_pid_10", "SBatchWait_3,1000,8000\nSBatchConsumed_3,9000,100\n");
  dir.file("run/lotustrace_log_worker_pid_11", "SDecode,1000,3000\n");
  dir.file("run/.lotus_beside_lotustrace_log_pid_11", "stage,SDecode,1000,3000,3\n");
  dir.file("run/lotustrace_log_worker_pid_12", "SCollate,8100,100\n");
  dir.file("run/.lotus_beside_lotustrace_log_pid_12", "stage,SCollate,8100,100,3\n");
  const std::string text = read_file(report(dir, dir.path() + "/run"));
  CHECK(contains(text, R"("arrows":[[3000,1,7100,2],[7200,2,8000,0]])"));
}

TEST_CASE("the page contains each batch's history and its time on the critical path") {
  const temp_dir dir;
  const char* const main =
      "SBatchWait_0,1000,4000\nSBatchConsumed_0,5000,100\n"
      "SBatchWait_1,6000,1\nSBatchConsumed_1,6000,100\nSBatchWait_2,7000,10\n";
  dir.file("run/lotustrace_log_main_pid_10", main);
  dir.file("run/lotustrace_log_worker_pid_11",
           "SBatchPreprocessed_0,1000,3000\nSBatchPreprocessed_1,4000,1000\n");
  const json data = page_data(report(dir, dir.path() + "/run"));
  const auto& batches = data["runs"][0]["batches"];
  CHECK(batches["all"].integer() == 3);
  // The numbers of a batch are: index, epoch, log + 1, time on the critical path + 1, whether out
  // of order; then the times dispatched, begun, ready, begin and end of the wait, received, end of
  // the step, each as 1 and the distance from the previous one, or as 0; then the number of stages,
  // which is 0.
  const std::uint64_t numbers[] = {0, 0,    2, 3001, 0, 0, 1, 0,    1, 6000,
                                   1, 5999, 1, 8000, 1, 0, 1, 2000, 0};
  std::string expected;
  for (const std::uint64_t n : numbers) {
    char bytes[varint_bytes];
    expected.append(bytes, put_varint(bytes, n));
  }
  const std::size_t whole = expected.size() / 3 * 4;
  CHECK(batches["histories"].text().substr(0, whole) == base64(expected).substr(0, whole));
}

TEST_CASE("the page says what the run was and how much of it was recorded") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a",
           "pid 11\nhost Snode17\ncommand Strain --lr 1\nrank 3\nthread 11 Smain\nrecords 90 10\n");
  dir.file("run/lotustrace_log_worker_pid_11",
           "SA,1763000000000000000,3000\ndamaged\nSA,1763000000000004000,1000\n");
  std::string text = read_file(report(dir, dir.path() + "/run", {"-q"}));
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  INFO(text.substr(text.find("\"facts\""), 300));
  CHECK(contains(
      text,
      R"("facts":{"started":"2025-11-13 02:13:20 UTC","length_ns":5000,)"
      R"("hosts":["node17"],"commands":["train --lr 1"],"ranks":1,"processes":1,"threads":1,"operations":2})"));
  CHECK(contains(text, R"("quality":{"malformed":1,"written":90,"dropped":10,"recovered":0,)"
                       R"("aggregated":0})"));
  CHECK(contains(text, R"("command":"lotus-tool report )"));
}

TEST_CASE("several counter tables are accepted before and after the directory") {
  const temp_dir dir;
  const std::string mapping =
      dir.file("m.json", R"({"op_to_func":{"Loader":["decode|a.so"]},"common_funcs_to_op":{}})");
  const std::string table =
      "Source Function / Function / Call Stack\tCPU Time\tModule\ndecode\t3s\ta.so\n";
  const std::string first = dir.file("first.csv", table);
  const std::string second = dir.file("second.csv", table);
  const std::string logs = traces() + "/c_ooo_w4";
  const std::string page = dir.path() + "/page.html";
  const std::vector<std::string> start{"report", "-o", page, "--mapping", mapping};
  const std::vector<std::vector<std::string>> forms{
      {logs, "--counters", first, second},
      {"--counters", first, second, logs},
      {"--counters", first, "--counters", second, logs}};
  for (const std::vector<std::string>& form : forms) {
    std::vector<std::string> all = start;
    all.insert(all.end(), form.begin(), form.end());
    const result r = run_well(all);
    CHECK(contains(read_file(page), R"("configs":["first","second"])"));
  }
  const result none =
      run({"report", "-o", page, "--mapping", mapping, "--counters", first, second});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "DIR is required"));
}

TEST_CASE("report does not overwrite its input files") {
  const temp_dir dir;
  const std::string log = dir.file("run/lotustrace_log_worker_pid_1", "SLoader,1000,5\n");
  const std::string mapping = dir.file("m.json", R"({"op_to_func":{},"common_funcs_to_op":{}})");
  for (const std::string& output : {log, mapping, dir.path() + "/lotustrace_log_new_1"}) {
    CHECK(run({"report", dir.path() + "/run", "--mapping", mapping, "-o", output}).status == 2);
  }
  CHECK(read_file(log) == "SLoader,1000,5\n");
}

TEST_CASE("--skip-batches omits batches from the page, and runs of one name are distinguished") {
  const temp_dir dir;
  std::string log;
  for (int i = 0; i < 4; ++i) {
    log += "SBatchPreprocessed_" + std::to_string(i) + ",1000,5\n";
  }
  dir.file("a/run/lotustrace_log_worker_pid_1", log);
  dir.file("b/run/lotustrace_log_worker_pid_1", log);
  const std::string page = dir.path() + "/page.html";
  const std::string second = dir.path() + "/b/run";
  REQUIRE(
      run({"report", dir.path() + "/a/run", second, "--skip-batches", "3", "-o", page}).status ==
      0);
  const std::string text = read_file(page);
  CHECK(contains(text, R"("batch_count":1,)"));
  CHECK(contains(text, R"("preprocess":{"count":1,)"));
  CHECK(contains(text, R"({"name":"run",)"));
  CHECK(contains(text, R"({"name":")" + second + "\","));
}
