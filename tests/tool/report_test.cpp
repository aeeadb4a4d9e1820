// The report's page: its escaping, and in a headless browser that it works.
#include "report.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "timeline_data.hpp"
#include "tool_test.hpp"

using namespace lotus::tool_test;
using lotus::tool::base64;
using lotus::tool::script_safe;

namespace {

// Stands before everything else on the page, to see every error.
const char* const watch = R"(<script>
var seen = [];
window.alert = function () { seen.push("alert"); };
window.addEventListener("error", function (e) { seen.push("error " + e.message); }, true);
window.addEventListener("securitypolicyviolation", function (e) { seen.push("csp " + e.violatedDirective); });
["error", "warn"].forEach(function (kind) {
  var before = console[kind];
  console[kind] = function () { seen.push(kind + " " + Array.from(arguments).join(" ")); before.apply(console, arguments); };
});
</script>)";

// Stands behind everything; leaves "key=value" lines in the page.
const char* const probe = R"(<script>
window.addEventListener("load", function () {
  var lines = [];
  var put = function (key, value) { lines.push(key + "=" + value); };
  ["timeline", "preprocess", "waits", "delays", "cpu", "functions", "counters"].forEach(function (id) {
    var canvas = document.getElementById(id);
    if (canvas.width * canvas.height === 0) return;
    var data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    var colours = new Set();
    for (var i = 0; i < data.length; i += 4) {
      if (data[i + 3] > 0) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
    }
    put("colours_" + id, colours.size);
  });
  var range = function () { return document.getElementById("timeline-range").textContent; };
  var all = range();
  put("drawn", timeline.drawn);
  var canvas = document.getElementById("timeline");
  var before = canvas.toDataURL();
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: canvas.getBoundingClientRect().left + 200, cancelable: true }));
  put("wheel_zooms", range() !== all && canvas.toDataURL() !== before);
  var near = timeline.to - timeline.from;
  document.getElementById("zoom-in").click();
  put("button_zooms", timeline.to - timeline.from < near);
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  for (var n = 0; n < 60; ++n) timeline.zoom(0.5, 0.3);
  put("deepest_ns", Math.round(timeline.to - timeline.from));
  document.getElementById("zoom-all").click();
  put("all_again", range() === all);
  put("functions_shown", !document.getElementById("functions-part").hidden);
  put("counters_shown", !document.getElementById("counters-part").hidden);
  put("functions_table", document.getElementById("functions-table").innerText.replace(/\s+/g, " "));
  put("counters_choice", Array.from(document.getElementById("counters-choice").options).map(function (o) {
    return o.textContent; }).join("; "));
  put("operations", document.querySelectorAll("#ops td.name").length);
  put("verdicts", document.querySelectorAll(".verdict .sentence").length);
  put("first_verdict", document.querySelector(".verdict .sentence").textContent);
  put("images", document.images.length);
  put("scripts", document.scripts.length);
  put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
  put("hostile_name", Array.from(document.querySelectorAll("#ops td.name")).some(function (e) {
    return e.textContent.indexOf("<img src=x onerror=alert(1)>") >= 0; }));
  setTimeout(function () {
    put("errors", seen.length ? seen.join("; ") : "none");
    var out = document.createElement("pre");
    out.id = "probed";
    out.textContent = "\n" + lines.join("\n") + "\n";
    document.body.append(out);
  }, 200);
});
</script>)";

/// Loads the page in a browser; what the probe found, by key. Empty without a browser.
std::map<std::string, std::string> browse(const temp_dir& dir, const std::string& page, int width) {
  const std::string chromium = LOTUS_CHROMIUM;
  if (chromium.empty()) {
    WARN("no chromium; the page is not loaded");
    return {};
  }
  std::string text = read_file(page);
  text.insert(text.find("<head>") + 6, watch);
  text.insert(text.rfind("</body>"), probe);
  const std::string copy = dir.file("probed.html", text);
  const std::string command =
      "timeout 120 '" + chromium +
      "' --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
      "--disable-background-networking --disable-component-update --disable-sync "
      "--disable-dev-shm-usage --user-data-dir='" +
      dir.path() + "/profile' --window-size=" + std::to_string(width) +
      ",900 --virtual-time-budget=20000 --dump-dom 'file://" + copy + "' 2>'" + dir.path() +
      "/chromium.err' >'" + dir.path() + "/dom'";
  const int status = std::system(command.c_str());
  INFO(read_file(dir.path() + "/chromium.err"));
  REQUIRE(status == 0);
  const std::string dom = read_file(dir.path() + "/dom");
  const std::size_t at = dom.find("id=\"probed\"");
  REQUIRE(at != std::string::npos);
  std::map<std::string, std::string> found;
  std::istringstream lines(dom.substr(at));
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) found[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return found;
}

std::string report(const temp_dir& dir, const std::string& runs,
                   const std::vector<std::string>& more = {}) {
  const std::string page = dir.path() + "/report.html";
  std::vector<std::string> arguments{"report", runs, "-o", page};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const result r = run(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return page;
}

/// What holds for every report.
void check_page(std::map<std::string, std::string>& found) {
  CHECK(found["errors"] == "none");
  CHECK(found["images"] == "0");
  CHECK(found["scripts"] == "5");  // data, library, ours, and the two of this test
  CHECK(found["wheel_zooms"] == "true");
  CHECK(found["button_zooms"] == "true");
  CHECK(found["all_again"] == "true");
  CHECK(std::stol(found["deepest_ns"]) <= 1000);
  CHECK(found["width_fits"] == "true");
  CHECK(std::stol(found["colours_timeline"]) > 4);
  for (const auto* chart : {"preprocess", "waits", "delays", "cpu"}) {
    INFO(chart);
    CHECK(std::stol(found[std::string("colours_") + chart]) > 2);
  }
}

}  // namespace

TEST_CASE("nothing in the data can end its script element") {
  CHECK(script_safe("a</script><!--&") == "a\\u003c/script\\u003e\\u003c!--\\u0026");
  CHECK(script_safe("\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA") == "\\u2028\\u2029\xE2\x80\xAA");
  CHECK(script_safe("\xE2\x80") == "\xE2\x80");
}

TEST_CASE("base64 as in RFC 4648, section 10") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("the page is one file that asks for nothing from elsewhere") {
  const temp_dir dir;
  const std::string text = read_file(report(dir, traces() + "/c_ooo_w4"));
  CHECK(contains(text, "default-src 'none'"));
  CHECK_FALSE(contains(text, "<link"));
  CHECK_FALSE(contains(text, " src="));
  CHECK_FALSE(contains(text, "@DATA@"));
  CHECK_FALSE(contains(text, "@SCRIPT@"));
  const std::size_t begin = text.find("id=\"data\">") + 10;
  const auto data = parse_json(text.substr(begin, text.find("</script>", begin) - begin));
  const auto& run_data = data["runs"][0];
  CHECK(std::string(run_data["verdict"]["verdict"].GetString()) == "preprocessing-bound");
  CHECK(run_data["ops"].Size() == 7);
  CHECK(run_data["waits_ns"].Size() == 75);
  CHECK(run_data["timeline"]["tracks"].Size() == 5);
  CHECK(run_data["timeline"]["arrows"].Size() == 75);
}

TEST_CASE("a real run is shown without an error, wide and narrow") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  for (const int width : {1280, 390}) {
    INFO(width);
    auto found = browse(dir, page, width);
    if (found.empty()) return;
    check_page(found);
    CHECK(found["operations"] == "7");
    CHECK(found["verdicts"] == "1");
    CHECK(found["functions_shown"] == "false");
    CHECK(found["counters_shown"] == "false");
    CHECK(contains(found["first_verdict"], "preprocessing-bound: the consumer waits 92.86 %"));
  }
}

TEST_CASE("hostile names stay text") {
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
  auto found = browse(dir, page, 1280);
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(found["images"] == "0");
  CHECK(found["scripts"] == "5");
  CHECK(found["hostile_name"] == "true");
}

TEST_CASE("functions and counters behind the operations") {
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
    auto found = browse(dir, page, width);
    if (found.empty()) return;
    check_page(found);
    CHECK(std::stol(found["colours_functions"]) > 4);
    CHECK(std::stol(found["colours_counters"]) > 4);
    CHECK(contains(found["functions_table"], "Loader decode libjpeg.so 30 75.0 %"));
    CHECK(contains(found["functions_table"], "&lt;/script&gt;&lt;img src=x&gt; b.so 10 25.0 %"));
    CHECK(found["counters_choice"] == "CPU Time; Clockticks; L1 Bound, clockticks");
  }
  // 10 % of 9000 and 50 % of 3000 clockticks; what no operation runs is outside.
  CHECK(contains(read_file(page),
                 R"x({"name":"L1 Bound, clockticks","configs":["w4"],"ops":[)x"
                 R"x({"name":"(outside)","values":[0]},{"name":"Collation","values":[1500]},)x"
                 R"x({"name":"Loader","values":[900]}]})x"));
  const std::string other = dir.path() + "/x";
  CHECK(run({"report", traces() + "/c_ooo_w4", "-o", other, "--counters", counters}).status == 2);
}

TEST_CASE("several tables of counters, before and behind the folder") {
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
    const result r = run(all);
    INFO(r.err);
    REQUIRE(r.status == 0);
    CHECK(contains(read_file(page), R"("configs":["first","second"])"));
  }
  const result none =
      run({"report", "-o", page, "--mapping", mapping, "--counters", first, second});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "DIR is required"));
}

TEST_CASE("what is read is not written over") {
  const temp_dir dir;
  const std::string log = dir.file("run/lotustrace_log_worker_pid_1", "SLoader,1000,5\n");
  const std::string mapping = dir.file("m.json", R"({"op_to_func":{},"common_funcs_to_op":{}})");
  for (const std::string& output : {log, mapping, dir.path() + "/lotustrace_log_new_1"}) {
    CHECK(run({"report", dir.path() + "/run", "--mapping", mapping, "-o", output}).status == 2);
  }
  CHECK(read_file(log) == "SLoader,1000,5\n");
}

TEST_CASE("the page leaves skipped batches out, and tells runs of one name apart") {
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

TEST_CASE("runs that lack nearly everything are shown too") {
  const temp_dir dir;
  auto found = browse(dir, report(dir, traces() + "/quirks/preprocessed_never_consumed"), 1280);
  if (!found.empty()) CHECK(found["errors"] == "none");
  const temp_dir other;
  other.file("lotustrace_log_worker_pid_1", "SA,10,0\n");
  found = browse(other, report(other, other.path()), 1280);
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(contains(found["first_verdict"], "no verdict"));
}

TEST_CASE("very many slices are drawn as columns, not one by one") {
  const temp_dir dir;
  std::string log;
  std::int64_t at = 1'000'000'000;
  for (int i = 0; i < 300'000; ++i) {
    log += "SOp" + std::to_string(i % 5) + ',' + std::to_string(at) + ",900\n";
    at += 1000;
  }
  dir.file("lotustrace_log_worker_pid_1", log);
  auto found = browse(dir, report(dir, dir.path()), 1280);
  if (found.empty()) return;
  CHECK(found["errors"] == "none");
  CHECK(std::stol(found["drawn"]) > 500);
  CHECK(std::stol(found["drawn"]) < 5000);
  CHECK(found["wheel_zooms"] == "true");
}
