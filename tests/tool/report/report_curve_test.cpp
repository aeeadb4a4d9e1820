// Tests the curve on the report's page, and that the first screen contains what it should.
#include <cstddef>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "operating_scripts.hpp"
#include "report_test.hpp"
#include "tool/replay/simulated_truth.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes a simulated run of the same program into a folder, with one loader or the same for
/// training and validation.
void record(const temp_dir& all, const std::string& folder, const truthful_loader& loader,
            bool validates = false) {
  const temp_dir dir;
  planted_logs logs;
  loader.simulate_into(logs);
  logs.write(dir);
  for (const std::string& name : dir.names()) {
    const bool is_info = name.rfind(".lotus_info", 0) == 0;
    std::string text = read_file(dir.path() + '/' + name);
    if (is_info) text += "command ./loader " + folder + '\n';
    all.file(folder + '/' + name, text);
    if (validates && !is_info) all.file(folder + "/val/" + name, text);
  }
}

/// The same with so many workers, in the folder w1, w2, ...
void record_with(const temp_dir& all, int workers, bool validates = false) {
  truthful_loader loader;
  loader.workers = workers;
  std::string folder = "w";
  folder += std::to_string(workers);
  record(all, folder, loader, validates);
}

constexpr const char* look_at_curve = R"(
  put("heads", document.querySelectorAll("h1").length);
  put("head", text("verdicts").indexOf(document.querySelector("h1").textContent) >= 0);
  put("curve_from", Math.round(document.getElementById("curve").getBoundingClientRect().top + window.scrollY));
  put("timeline_from", Math.round(document.getElementById("timeline").getBoundingClientRect().top + window.scrollY));
  put("sets", speedCurve.chart.data.datasets.map(function (set) { return set.label; }).join("; "));
  put("dots", speedCurve.chart.data.datasets[1].data.map(function (dot) { return dot.x; }).join(" "));
  put("told", document.getElementById("curve").getAttribute("aria-label"));
  put("now", text("curve-sentence"));
  document.getElementById("curve").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
  put("next", text("curve-sentence"));
  put("last_rate", speedCurve.points().pop().per_s);
  var sliders = Array.from(document.querySelectorAll("#curve-sliders input"));
  put("sliders", sliders.map(function (of) { return of.parentElement.textContent.replace(/\s+/g, " "); }).join("; "));
  sliders.forEach(function (of) { of.value = of.max; of.dispatchEvent(new Event("input")); });
  put("faster", text("curve-sentence"));
  put("slider_told", sliders.length ? sliders[0].getAttribute("aria-valuetext") : "");
  put("faster_last_rate", speedCurve.points().pop().per_s);
  put("low_to_high", speedCurve.points().every(function (of) { return of.low <= of.per_s && of.per_s <= of.high; }));
  put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
)";

}  // namespace

TEST_CASE("the page shows the curve that whatif predicts, and what faster operations change") {
  const temp_dir all;
  for (const int workers : {1, 2, 4}) record_with(all, workers);
  const std::string dir = all.path() + "/w1";
  const std::string page = report(all, dir);
  const json curve =
      parse_json(run({"whatif", dir, "--curve", "workers", "--json", "-q"}).out)["curve"];
  const json asked =
      parse_json(run({"whatif", dir, "--workers", "2", "--json", "-q"}).out)["changes"][0];
  const json shown = page_data(page)["runs"][0]["curves"];
  REQUIRE(shown["axes"].size() > 0);
  REQUIRE(shown["axes"][0]["points"].size() == curve["points"].size());
  for (std::size_t i = 0; i < curve["points"].size(); ++i) {
    CHECK(shown["axes"][0]["points"][i].canonical() == curve["points"][i].canonical());
  }
  CHECK(shown["axes"][0]["points"][1]["batches_per_s"].number() == asked["batches_per_s"].number());
  for (const int width : {1280, 390}) {
    CAPTURE(width);
    auto found = browse(all, page, width, acting(look_at_curve));
    if (found.empty()) return;
    CHECK(found["width_fits"] == "true");
    CHECK(found["heads"] == "1");
    CHECK(found["head"] == "true");
    if (width == 1280) {  // both are in view on a screen of 800 pixels
      CHECK(std::stoi(found["curve_from"]) < 200);
      CHECK(std::stoi(found["timeline_from"]) < 740);
    }
    CHECK(found["sets"].rfind("this run; other runs, measured; predicted; ; 90 % interval", 0) ==
          0);
    CHECK(contains(found["sets"], "limit: consumer, "));
    CHECK(found["dots"] == "2 4");
    CHECK(contains(found["told"], "w2: 2 workers, "));
    CHECK(contains(found["told"], "(predicted "));
    CHECK(contains(found["now"], "1 worker, as recorded: "));
    CHECK(found["next"].rfind("2 workers instead of 1: ", 0) == 0);
    CHECK(contains(found["next"], "90 % interval"));
    CHECK(contains(found["sliders"], "Decode as it is"));
    CHECK(contains(found["faster"], "2 workers instead of 1, "));
    CHECK(contains(found["faster"], "Decode 3x faster"));
    CHECK(found["slider_told"] == "3× faster");
    CHECK(std::stod(found["faster_last_rate"]) >= std::stod(found["last_rate"]));
    CHECK(found["low_to_high"] == "true");
  }
}

TEST_CASE("the page of two runs begins with the result and what was predicted") {
  const temp_dir all;
  for (const int workers : {1, 2}) record_with(all, workers);
  const std::string page = report(all, all.path() + "/w1", {all.path() + "/w2"});
  auto found = browse(all, page, 1280, acting(R"(
    put("head", document.querySelector("h1").textContent);
    put("heads", document.querySelectorAll("h1").length);)"));
  if (found.empty()) return;
  CHECK(found["heads"] == "1");
  INFO(found["head"]);
  CHECK(contains(found["head"], " times as fast: "));
  CHECK(contains(found["head"], "(predicted from the first run alone for "));
}

TEST_CASE("a page of two runs with several loaders compares each, with timelines on one scale") {
  const temp_dir all;
  for (const int workers : {1, 2}) record_with(all, workers, true);
  const std::string page = report(all, all.path() + "/w1", {all.path() + "/w2"});
  for (const int width : {1280, 390}) {
    auto found = browse(all, page, width, acting(R"(
    put("head", document.querySelector("h1").textContent);
    put("heads", document.querySelectorAll("h1").length);
    put("second", document.querySelector("#compare-sentence h2").textContent);
    put("loaders", Array.from(document.getElementById("compare-loader").options).map(function (of) { return of.textContent; }).join(" "));
    var below = aligned.other;
    put("name", text("aligned-name"));
    put("label", document.getElementById("aligned-timeline").getAttribute("aria-label"));
    var same = function () { return below.from === timeline.from && below.to === timeline.to && below.plot === timeline.plot; };
    put("span", timeline.span === Math.max(timeline.run.timeline.span_ns, below.run.timeline.span_ns));
    put("same", same());
    timeline.zoom(0.2, 0.4);
    put("same_when_zoomed", same());
    put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
    document.getElementById("aligned-name").click();
    later = new Promise(function (done) { setTimeout(done, 300); }).then(function () {
      put("changed", timeline.run.name + " above " + aligned.other.run.name); });)"));
    if (found.empty()) return;
    CHECK(found["width_fits"] == "true");
    CHECK(found["heads"] == "1");
    CHECK(contains(found["head"], "default loader: "));
    CHECK(contains(found["head"], " times as fast: "));
    CHECK(contains(found["second"], "val: "));
    CHECK(contains(found["second"], " times as fast: "));
    CHECK(found["loaders"] == "default loader val");
    CHECK(found["name"] == "w2");
    CHECK(found["label"] == "Timeline of w2, on the same scale of time");
    for (const auto* what : {"span", "same", "same_when_zoomed"}) {
      INFO(what);
      CHECK(found[what] == "true");
    }
    CHECK(found["changed"] == "w2 above w1");
  }
}

TEST_CASE("a page of two runs that differ in one operation begins with the curve of its speed") {
  const temp_dir all;
  truthful_loader loader;
  record(all, "before", loader);
  loader.make_ms /= 2;
  record(all, "after", loader);
  const std::string page = report(all, all.path() + "/before", {all.path() + "/after"});
  const json axis = page_data(page)["runs"][0]["curves"]["axes"][0];
  CHECK(axis["axis"].text() == "speed");
  CHECK(axis["of"].text() == "Decode");
  auto found = browse(all, page, 1280, acting(R"(
    put("head", document.querySelector("h1").textContent);
    put("axis", text("curve-axis"));
    put("told", document.getElementById("curve").getAttribute("aria-label"));)"));
  if (found.empty()) return;
  CHECK(contains(found["head"], "(predicted from the first run alone for "));
  CHECK(found["axis"].rfind("times as fast: Decode", 0) == 0);
  CHECK(contains(found["told"], "after: Decode "));
  CHECK(contains(found["told"], "x as fast, "));
}

TEST_CASE("a run without predictions shows the reason instead of a curve") {
  const temp_dir all;
  truthful_loader loader;
  loader.batches = 1;
  planted_logs logs;
  loader.simulate_into(logs);
  logs.write(all);
  const std::string page = report(all, all.path());
  const json curves = page_data(page)["runs"][0]["curves"];
  const json answer = parse_json(run({"whatif", all.path(), "--json", "-q"}).out);
  REQUIRE(curves.has("why_not"));
  CHECK(curves["why_not"].text() == answer["why"].text());
  CHECK_FALSE(curves.has("axes"));
}
