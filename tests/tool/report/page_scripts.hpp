// Scripts that the browser test of the report adds to a page.
#ifndef LOTUS_TESTS_PAGE_SCRIPTS_HPP
#define LOTUS_TESTS_PAGE_SCRIPTS_HPP

namespace lotus::tool_test {

// Must come before everything else on the page, to record all errors.
inline constexpr const char* watch = R"(<script>
var seen = [];
window.alert = function () { seen.push("alert"); };
window.addEventListener("error", function (e) { seen.push("error " + e.message); }, true);
window.addEventListener("securitypolicyviolation", function (e) { seen.push("csp " + e.violatedDirective); });
["error", "warn"].forEach(function (kind) {
  var before = console[kind];
  console[kind] = function () { seen.push(kind + " " + Array.from(arguments).join(" ")); before.apply(console, arguments); };
});
</script>)";

// Reads the first screen. Append this to a page that was cut off before its data.
inline constexpr const char* first_screen_probe = R"(<script>
var told = "\nfirst_screen=" + document.getElementById("verdicts").innerText.replace(/\s+/g, " ") +
  "\nerrors=" + (seen.length ? seen.join("; ") : "none") + "\n";
var out = document.createElement("pre");
out.id = "probed";
out.textContent = told;
document.body.append(out);
</script>)";

// Must come after everything else on the page; writes "key=value" lines into the page.
inline constexpr const char* probe = R"(<script>
pageReady.then(function () {
  var lines = [];
  var put = function (key, value) { lines.push(key + "=" + value); };
  ["timeline", "times", "preprocess", "waits", "delays", "cpu", "functions", "counters"].forEach(function (id) {
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
  var wheel = function (ctrl) {
    return canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, ctrlKey: ctrl,
      clientX: canvas.getBoundingClientRect().left + 200, cancelable: true }));
  };
  put("plain_wheel_scrolls", wheel(false) && range() === all);
  put("wheel_zooms", !wheel(true) && range() !== all && canvas.toDataURL() !== before);
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
  var shownText = function (id) { return document.getElementById(id).innerText.replace(/\s+/g, " "); };
  // On a narrow screen, this button shows the less important columns too.
  var all_columns = document.querySelector("button.all-columns");
  if (all_columns && all_columns.offsetWidth > 0) all_columns.click();
  put("operations_table", shownText("ops"));
  put("cpu_note_shown", !document.getElementById("cpu-note").hidden);
  put("preprocess_shown", !document.getElementById("preprocess-part").hidden);
  put("legend", shownText("legend").trim());
  put("stages_shown", !document.getElementById("stages-part").hidden);
  put("through_stages", shownText("through-stages"));
  document.querySelectorAll("details").forEach(function (tree) { tree.open = true; });
  put("trees", shownText("through-stages"));
  put("async_table", shownText("async"));
  put("stages_table", shownText("stages"));
  put("pipeline", shownText("pipelines"));
  put("lanes", timeline.lanes.map(function (lane) { return lane.title; }).join("; "));
  var counter = timeline.lanes.find(function (lane) { return lane.rows[0].kind === "counter" && lane.title.indexOf("bytes") === 0; });
  if (counter) {
    workbench.tooltip.show(canvas.clientWidth - 2, counter.rows[0].y + 20);
    put("counter_told", shownText("tooltip"));
  }
  var offCpu = timeline.lanes.flatMap(function (lane) { return lane.rows; }).find(function (row) { return row.kind === "off CPU" && !row.hidden; });
  if (offCpu) {
    workbench.tooltip.show(timeline.x((offCpu.start[0] + offCpu.end[0]) / 2), offCpu.y + 5);
    put("off_cpu_told", shownText("tooltip"));
    var offCpuRows = function (title) { return timeline.lanes.filter(function (lane) { return lane.title.indexOf(title) === 0; })
      .flatMap(function (lane) { return lane.rows; }).filter(function (row) { return row.kind === "off CPU"; }); };
    put("off_cpu_thin", heightOf(offCpu) <= rowHeight / 2);
    put("off_cpu_of_consumer", offCpuRows("main").map(function (row) { return row.hidden; }).join("; "));
  }
  put("heads_unexplained", Array.from(document.querySelectorAll("th[scope=col], thead th")).filter(function (head) {
    return head.scope !== "col" || head.title.length < 8 || head.title.trim() === head.textContent.trim(); })
    .map(function (head) { return head.textContent || "empty"; }).join("; ") || "none");
  put("run_choice", Array.from(document.getElementById("run").options).map(function (o) {
    return o.textContent; }).join("; "));
  put("dropped_told", document.body.innerText.split("records were dropped").length - 1);
  put("operations", document.querySelectorAll("#ops th.name").length);
  put("verdicts", document.querySelectorAll(".verdict .sentence").length);
  put("first_verdict", document.querySelector(".verdict .sentence").textContent);
  put("images", document.images.length);
  put("scripts", document.scripts.length);
  put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
  put("hostile_name", Array.from(document.querySelectorAll("#ops th.name")).some(function (e) {
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

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PAGE_SCRIPTS_HPP
