// Tests that the report's page works in a headless browser.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "page_scripts.hpp"
#include "report_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Checks what must be true for every report.
void check_page(std::map<std::string, std::string>& found) {
  CHECK(found["images"] == "0");
  // There are seven scripts: data and code of the first screen, data and code of the rest of the
  // page, a library, and two scripts of the test.
  CHECK(found["scripts"] == "7");
  CHECK(found["heads_unexplained"] == "none");
  CHECK(found["wheel_zooms"] == "true");
  CHECK(found["plain_wheel_scrolls"] == "true");
  CHECK(found["button_zooms"] == "true");
  CHECK(found["all_again"] == "true");
  CHECK(std::stol(found["deepest_ns"]) <= 1000);
  CHECK(found["width_fits"] == "true");
  CHECK(std::stol(found["colours_timeline"]) > 4);
  for (const auto* chart : {"times", "waits", "delays"}) {
    INFO(chart);
    CHECK(std::stol(found[std::string("colours_") + chart]) > 2);
  }
}

}  // namespace

TEST_CASE("the page shows a real run without errors on wide and narrow screens") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  for (const int width : {1280, 390}) {
    INFO(width);
    auto found = browse(dir, page, width, probe);
    if (found.empty()) return;
    check_page(found);
    CHECK(found["operations"] == "7");
    CHECK(found["verdicts"] == "1");
    CHECK(found["functions_shown"] == "false");
    CHECK(found["counters_shown"] == "false");
    CHECK(found["cpu_note_shown"] == "false");
    CHECK_FALSE(contains(found["operations_table"], "on CPU"));
    CHECK(found["stages_shown"] == "false");
    CHECK(contains(found["first_verdict"],
                   "(preprocessing-bound). The consumer waited for data 93 %"));
  }
}

TEST_CASE("the page shows the first screen before the rest is loaded") {
  const temp_dir dir;
  std::string text = read_file(report(dir, traces() + "/c_ooo_w4"));
  text.erase(text.find("<script type=\"application/json\" id=\"data\">"));
  auto found = browse(dir, dir.file("cut.html", text + "</body></html>"), 1280, first_screen_probe);
  if (found.empty()) return;
  INFO(found["first_screen"]);
  CHECK(
      contains(found["first_screen"], "(preprocessing-bound). The consumer waited for data 93 %"));
  // The page must show the numbers that diagnose prints, in the same words and order.
  const json screen = parse_json(run({"diagnose", traces() + "/c_ooo_w4", "--json"}).out)["screen"];
  std::size_t at = 0;
  const auto check_next = [&](const std::string& shown) {
    const std::size_t next = found["first_screen"].find(shown, at);
    INFO(shown);
    CHECK(next != std::string::npos);
    if (next != std::string::npos) at = next;
  };
  for (const char* const part : {"title", "headline", "why"}) check_next(screen[part].text());
  for (const json& of : screen["advice"].array()) {
    check_next(of["change"].text());
    check_next(of["now"].text() + " → " + of["then"].text());
    check_next(of["low"].text() + " to " + of["high"].text());
  }
  for (const json& of : screen["not_worth"].array()) check_next(of.text());
  for (const json& of : screen["where"].array()) {
    check_next(of["name"].text() + ' ' + std::to_string(of["share"].integer()) + " %");
  }
  check_next(screen["slowest"].text());
  CHECK(contains(found["first_screen"], "90 % interval"));
  CHECK(contains(found["first_screen"], "Recorded: 3,675 operations, 75 batches"));
}

TEST_CASE("the page shows names with HTML as text") {
  const temp_dir dir;
  const std::string name = "S</script><img src=x onerror=alert(1)>";
  dir.file("b1</script><img src=x onerror=alert(2)>/lotustrace_log_worker_pid_1",
           name +
               ",10,500\nS%22%27`${alert(3)}%3C!--,600,500\nS@SCRIPT@@CHART@,1200,10\n"
               "SBatchPreprocessed_0,10,1300\n");
  dir.file("b1</script><img src=x onerror=alert(2)>/lotustrace_log_main_pid_1",
           "SBatchWait_0,5,1400\nSBatchConsumed_0,2000,1000\nSBatchWait_1,3000,2000\n");
  const std::string page = report(dir, dir.path());
  CHECK_FALSE(contains(read_file(page), "<img"));
  auto found = browse(dir, page, 1280, probe);
  if (found.empty()) return;
  CHECK(found["images"] == "0");
  CHECK(found["scripts"] == "7");
  CHECK(found["hostile_name"] == "true");
}

TEST_CASE("the page shows the functions and counters of operations") {
  const temp_dir dir;
  const std::string mapping = dir.file(
      "m.json",
      R"({"op_to_func":{"Loader":["decode|libjpeg.so","</script><img src=x>|b.so"],"Collation":["copy|libc.so"]},)"
      R"("common_funcs_to_op":{},"functions":{"Loader":{"decode|libjpeg.so":{"hits":2,"runs":2,"samples":30,"share":0.75},)"
      R"("</script><img src=x>|b.so":{"hits":1,"runs":2,"samples":10,"share":0.25}},)"
      R"("Collation":{"copy|libc.so":{"hits":2,"runs":2,"samples":8,"share":1}}}})");
  const std::string counters =
      dir.file("w4.csv",
               "Source Function / Function / Call Stack\tCPU Time\tClockticks\tL1 Bound\tModule\n"
               "decode\t3s\t9,000\t10.0%\tlibjpeg.so\n"
               "copy\t1s\t3,000\t50.0%\tlibc.so\n"
               "elsewhere\t2s\t6,000\t0.0%\tlibm.so\n");
  const std::string page =
      report(dir, traces() + "/c_ooo_w4", {"--mapping", mapping, "--counters", counters});
  CHECK_FALSE(contains(read_file(page), "<img"));
  for (const int width : {1280, 390}) {
    INFO(width);
    auto found = browse(dir, page, width, probe);
    if (found.empty()) return;
    check_page(found);
    CHECK(std::stol(found["colours_functions"]) > 4);
    CHECK(std::stol(found["colours_counters"]) > 4);
    CHECK(contains(found["functions_table"], "Loader decode libjpeg.so 30 75.0 %"));
    CHECK(contains(found["functions_table"], "&lt;/script&gt;&lt;img src=x&gt; b.so 10 25.0 %"));
    CHECK(found["counters_choice"] == "CPU Time; Clockticks; L1 Bound, clockticks");
  }
  // L1 Bound is 10 % of 9000 and 50 % of 3000 clockticks. Clockticks of functions outside of all
  // operations do not count.
  CHECK(contains(read_file(page),
                 R"x({"name":"L1 Bound, clockticks","configs":["w4"],"ops":[)x"
                 R"x({"name":"(outside)","values":[0]},{"name":"Collation","values":[1500]},)x"
                 R"x({"name":"Loader","values":[900]}]})x"));
  const std::string other = dir.path() + "/x";
  CHECK(run({"report", traces() + "/c_ooo_w4", "-o", other, "--counters", counters}).status == 2);
}

TEST_CASE("the page shows runs in which nearly everything is missing") {
  const temp_dir dir;
  browse(dir, report(dir, traces() + "/quirks/preprocessed_never_consumed"), 1280, probe);
  const temp_dir other;
  other.file("lotustrace_log_worker_pid_1", "SA,10,0\n");
  auto found = browse(other, report(other, other.path()), 1280, probe);
  if (found.empty()) return;
  CHECK(contains(found["first_verdict"], "No verdict"));
}

TEST_CASE("very many slices are drawn as columns instead of one by one") {
  const temp_dir dir;
  std::string log;
  std::int64_t at = 1'000'000'000;
  for (int i = 0; i < 300'000; ++i) {
    log += "SOp" + std::to_string(i % 5) + ',' + std::to_string(at) + ",900\n";
    at += 1000;
  }
  dir.file("lotustrace_log_worker_pid_1", log);
  auto found = browse(dir, report(dir, dir.path()), 1280, probe);
  if (found.empty()) return;
  CHECK(std::stol(found["drawn"]) > 500);
  CHECK(std::stol(found["drawn"]) < 5000);
  CHECK(found["wheel_zooms"] == "true");
}

TEST_CASE("the page shows CPU time, stages, loaders and counters") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads("cpu switches\nrecords 99900 100\n"));
  for (const std::string folder : {"run/", "run/val%3Cimg%3E/"}) {
    thread_logs consumer;
    thread_logs worker;
    for (std::int64_t i = 0; i < 30; ++i) {
      worker.stage("Read", 20 * i, 8, i);
      worker.off_cpu(20 * i + 8, 6, "1");
      worker.stage("Decode", 20 * i + 8, 12, i);
      consumer.wait(i, 20 * i, 20);
      consumer.consumed(i, 20 * i + 20);
      consumer.off_cpu(20 * i + 19, 10, "0");
      consumer.operation("Fetch", 20 * i, 4);
      consumer.side_log +=
          "piece," + columns("SFetch", 20 * i, 4) + ',' + std::to_string(i / 2) + '\n';
      worker.side_log += "counter,Sbytes%20in%20flight," + std::to_string(begin_ns + 20 * i * ms) +
                         ',' + std::to_string(i % 7 - 1) + ",0\n";
    }
    consumer.write(dir, folder, 1);
    worker.write(dir, folder, 2);
  }
  const std::string page = report(dir, dir.path() + "/run");
  CHECK_FALSE(contains(read_file(page), "val<img>"));
  for (const int width : {1280, 390}) {
    INFO(width);
    auto found = browse(dir, page, width, probe);
    if (found.empty()) return;
    CHECK(found["width_fits"] == "true");
    CHECK(found["heads_unexplained"] == "none");
    CHECK(found["preprocess_shown"] == "false");  // no worker has built a whole batch
    CHECK(found["legend"] ==
          "preprocessing wait step out-of-order arrival outlined: what the run waited for "
          "blocked → from where a batch was ready to its next step "
          "Read Decode Fetch");
    CHECK(found["run_choice"] == "run; run, loader val&lt;img&gt;");
    CHECK(contains(found["operations_table"],
                   "total self on CPU waits for CPU blocked mean p50 p90 p99 max"));
    CHECK(contains(found["operations_table"], "240 ms 240 ms 60 ms 30 ms 150 ms"));
    CHECK(found["cpu_note_shown"] == "true");
    CHECK(found["stages_shown"] == "true");
    CHECK(contains(found["stages_table"], "run, loader val&lt;img&gt; Read 30 8 ms"));
    CHECK(contains(found["stages_table"], "1 shared"));
    INFO(found["pipeline"]);
    CHECK(contains(found["pipeline"], "Read 1 thread"));
    CHECK(contains(found["pipeline"], "→ "));
    CHECK(contains(found["pipeline"], "Decode (the limit) 1 thread"));
    CHECK(contains(found["stages_table"], "50 60.0 %"));
    CHECK(contains(found["through_stages"],
                   "run: 30 batches from first stage to last: p50 20 ms, p99 20 ms; the slowest:"));
    CHECK(contains(found["trees"],
                   "of it in queues) Read 8 ms at 0 thread 2 Decode 12 ms at 8 ms thread 2"));
    CHECK(contains(found["async_table"], "Fetch 15 24 ms 24 ms 24 ms 24 ms 360 ms 120 ms"));
    CHECK(contains(found["lanes"], "Fetch, asynchronous"));
    CHECK(contains(found["off_cpu_told"], "start 2 ms duration 6 ms"));
    // Time off the CPU must be drawn in thin rows, and not for the consumer, whose waits are drawn
    // already.
    CHECK(found["off_cpu_thin"] == "true");
    CHECK(found["off_cpu_of_consumer"] == "true");
    CHECK(contains(found["through_stages"], "(20 ms, 0 of it in queues)"));
    CHECK(contains(found["lanes"], "bytes in flight (-1 to 5)"));
    CHECK(contains(found["counter_told"], "bytes in flight (-1 to 5) value 0"));
    CHECK(found["dropped_told"] == "2");  // the checks of both loaders report dropped records
  }
}
