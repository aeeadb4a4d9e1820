// Scripts with which the browser test operates the page by mouse, by touch, by keyboard and by its
// URL.
#ifndef LOTUS_TESTS_OPERATING_SCRIPTS_HPP
#define LOTUS_TESTS_OPERATING_SCRIPTS_HPP

#include <string>

namespace lotus::tool_test {

/// Returns a script that runs `body` when the page is completely loaded; `put(key, value)` records
/// a result.
inline std::string acting(const std::string& body) {
  return R"(<script>
pageReady.then(function () {
  var lines = [];
  var put = function (key, value) { lines.push(key + "=" + value); };
  var text = function (id) { return document.getElementById(id).innerText.replace(/\s+/g, " ").trim(); };
  var canvas = document.getElementById("timeline");
  var pointer = function (kind, x, y, more) {
    var box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent(kind, Object.assign({ clientX: box.left + x, clientY: box.top + y,
      pointerId: 1, pointerType: "mouse", bubbles: true }, more)));
  };
  var click = function (x, y, more) { pointer("pointerdown", x, y, more); pointer("pointerup", x, y, more); };
  var drag = function (x, x2, y, more) {
    pointer("pointerdown", x, y, more);
    pointer("pointermove", (x + x2) / 2, y, more);
    pointer("pointermove", x2, y, more);
    pointer("pointerup", x2, y, more);
  };
  var key = function (name) { canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true })); };
  var seenNow = function () { return [timeline.from, timeline.to]; };
  var middleOf = function (row, i) { return timeline.x((row.start[i] + row.end[i]) / 2); };
  var laneOf = function (start) { return timeline.lanes.find(function (lane) { return lane.title.indexOf(start) === 0; }); };
  var later = Promise.resolve();
)" + body +
         R"(
  later.then(function () { return new Promise(function (done) { setTimeout(done, 600); }); }).then(function () {
    put("errors", seen.length ? seen.join("; ") : "none");
    put("hash", location.hash);
    var out = document.createElement("pre");
    out.id = "probed";
    out.textContent = "\n" + lines.join("\n") + "\n";
    document.body.append(out);
  });
});
</script>)";
}

inline constexpr const char* select_and_report = R"(
  var lane = laneOf("worker 22632");
  var batches = lane.rows[0];
  var forty = Array.from(batches.name).findIndex(function (name) { return name % 1e9 === 40; });
  pointer("pointermove", middleOf(batches, forty), batches.y + 4);
  put("batch_tip", text("tooltip"));
  click(middleOf(batches, forty), batches.y + 4);
  put("batch_life", text("selection"));
  put("boxes", document.querySelectorAll("#boxes .box").length);
  put("arrows", timeline.shownArrows().length);
  document.querySelectorAll("#selection button")[1].click();
  put("batch_behind", text("selection").slice(0, 8));
  var ops = lane.rows[1];
  var long = 0;
  for (var i = 0; i < ops.length; ++i) if (ops.duration(i) > ops.duration(long)) long = i;
  pointer("pointermove", middleOf(ops, long), ops.y + 4);
  put("operation_tip", text("tooltip"));
  click(middleOf(ops, long), ops.y + 4);
  put("operation", text("selection"));
  var bars = function () { return document.querySelectorAll("#selection svg [role=button]"); };
  bars()[0].dispatchEvent(new MouseEvent("click"));
  put("brushed", text("selection").indexOf("Highlighted above: calls that took 177.8 µs to 316.2 µs") >= 0);
  bars()[2].dispatchEvent(new MouseEvent("click", { shiftKey: true }));
  put("brushed_wider", text("selection").indexOf("Highlighted above: calls that took 177.8 µs to 1 ms") >= 0);
  put("brushed_slowest", timeline.selection.slowest.every(function (of) { return of.row.duration(of.i) < 1e6; }) &&
    timeline.emphasis.placesIn(ops).length < ops.length);
  drag(timeline.x(1e9), timeline.x(2e9), batches.y + 4);
  put("range", text("selection"));
  workbench.selection.range(0, timeline.span);
  put("whole", text("selection"));
  key("Escape");
  put("cleared", document.getElementById("selection").hidden);
  var open = lane.bottom - lane.y;
  click(10, lane.y + 5);
  put("collapsed", lane.collapsed && lane.bottom - lane.y < open);
  document.getElementById("fold").click();
  put("all_collapsed", timeline.lanes.every(function (of) { return of.collapsed || of.rows.length < 2; }));
  document.getElementById("fold").click();
  put("all_open", timeline.lanes.every(function (of) { return !of.collapsed; }));
  workbench.selection.batch(timeline.histories.byIndex.get(40)[0]);
  timeline.look(1e9, 3e9);
)";

inline constexpr const char* search_and_keys = R"(
  var box = document.getElementById("search");
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }));
  put("slash_searches", document.activeElement === box);
  var search = function (what) { box.value = what; box.dispatchEvent(new Event("input")); };
  search("resize");
  put("found", text("search-result"));
  search("17");
  put("found_number", text("search-result"));
  search("nothing like it");
  put("found_nothing", text("search-result"));
  search("Loader");
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  put("first", text("selection"));
  key("n");
  put("second", text("selection"));
  key("N");
  put("first_again", text("selection"));
  key("0");
  var all = seenNow();
  key("w");
  put("w_zooms_in", timeline.to - timeline.from < all[1] - all[0]);
  key("End");
  put("end", Math.abs(timeline.to - timeline.span) < 1);
  var before = seenNow();
  key("a");
  put("a_moves_left", timeline.from < before[0]);
  key("d");
  put("d_moves_right", Math.abs(timeline.from - before[0]) < 1);
  key("Escape");
  key("ArrowLeft");
  put("arrow_moves", timeline.from < before[0]);
  key("Home");
  put("home", timeline.from === 0);
  key("s");
  put("s_zooms_out", Math.abs(timeline.to - all[1]) < 1);
  document.querySelectorAll("#ops button.sort")[0].click();
  put("sorted", document.querySelector("#ops [aria-sort]").textContent + " " + document.querySelector("#ops [aria-sort]").ariaSort);
  document.querySelectorAll("#ops button.sort")[3].click();
  document.querySelectorAll("#ops button.sort")[3].click();
  put("rising", document.querySelector("#ops tbody th").textContent);
  document.querySelector("#icicle button").click();
  put("icicle", text("icicle-shown"));
)";

/// Follows the links of the first screen, and records where each of them leads.
inline constexpr const char* follow_links = R"(
  var screen = document.getElementById("verdicts");
  var bar = screen.querySelector(".path");
  var parts = Array.from(bar.querySelectorAll("button"));
  put("group", bar.getAttribute("role"));
  put("parts_are_named", parts.every(function (of) { return /%/.test(of.getAttribute("aria-label")); }));
  put("one_tab_stop", parts.filter(function (of) { return of.tabIndex === 0; }).length);
  parts[0].focus();
  parts[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
  put("arrow_goes_on", document.activeElement === parts[1] && parts[1].tabIndex === 0 && parts[0].tabIndex === -1);
  var links = Array.from(screen.querySelectorAll("button.link"));
  var find = function (text) { return links.find(function (of) { return of.textContent.indexOf(text) >= 0; }); };
  var place = function () { var s = timeline.selection; return !s ? "nothing" : s.kind + (s.name ? " " + s.name : ""); };
  var follow = function (key, button) {
    later = later.then(function () {
      workbench.selection.clear();
      timeline.all();
      button.click();
      return new Promise(function (done) { setTimeout(done, 50); });
    }).then(function () {
      var s = timeline.selection;
      put(key, place());
      if (s && s.kind === "range") {
        var share = timeline.run.verdict.critical_path.find(function (of) { return of.target.kind === "range"; });
        put(key + "_from", Math.round(s.from) === share.target.at_ns && Math.round(s.to - s.from) === share.target.ns);
        put(key + "_seen", timeline.from <= s.from && timeline.to >= s.to && timeline.to - timeline.from < timeline.span);
      }
      if (s && s.hit) put(key + "_took", s.hit.row.duration(s.hit.i));
      put(key + "_focus", document.activeElement === canvas ? "timeline" : document.activeElement.closest("section").id);
    });
  };
  follow("bar", parts[0]);
  follow("list", find("Loader 71"));
  follow("gap", parts[timeline.run.verdict.critical_path.filter(function (of) { return of.ns > 0; })
    .findIndex(function (of) { return of.target.kind === "range"; })]);
  follow("suggestion", find("Loader 2x faster"));
  follow("workers", find("8 workers"));
  follow("waiting", find("92.9"));
  follow("slowest", find("Slowest call"));
)";

/// Double-clicks a batch, which must zoom in on the batch, and then a place without slices, which
/// must show the whole run again.
inline constexpr const char* double_click = R"(
  var batches = laneOf("worker 22632").rows[0];
  var forty = Array.from(batches.name).findIndex(function (name) { return name % 1e9 === 40; });
  var twice = function (x, y) {
    var box = canvas.getBoundingClientRect();
    click(x, y);
    click(x, y);
    canvas.dispatchEvent(new MouseEvent("dblclick", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
  };
  twice(middleOf(batches, forty), batches.y + 4);
  var length = batches.duration(forty);
  put("zoomed", timeline.from <= batches.start[forty] && timeline.to >= batches.end[forty] && timeline.to - timeline.from < 2.1 * length);
  put("selected", text("selection").slice(0, 8));
  timeline.look(batches.end[batches.length - 1], timeline.span);
  twice(timeline.width - 2, 5);
  put("whole", timeline.to - timeline.from === timeline.span);
)";

/// Records the labels of the charts' axes, where waits of 0 are drawn, and how a counter with many
/// values in each pixel column is drawn.
inline constexpr const char* look_at_charts = R"(
  put("axes", charts.map(function (of) { return of.scales.y.ticks.map(function (tick) { return tick.label; })
    .filter(function (label) { return label; }).join(", "); }).join(", "));
  var waits = charts.find(function (of) { return of.canvas.id === "waits"; });
  var points = waits.data.datasets[0].data;
  var zeros = report.runs[0].waits_ns.filter(function (ns) { return ns === 0; }).length;
  put("zeros", zeros);
  put("zeros_at_bottom", points.slice(0, zeros).every(function (point) { return waits.scales.y.getPixelForValue(point.y) >= waits.chartArea.bottom - 1; }) &&
    waits.scales.y.getPixelForValue(points[zeros].y) < waits.chartArea.bottom - 1);
  var values = [];
  for (var i = 0; i < 100000; ++i) values.push([Math.floor(timeline.span * i / 100000), i % 2 * 10]);
  timeline.lanes = [counterLane("many", values, timeline.span)];
  timeline.draw();
  var row = timeline.lanes[0].rows[0];
  var scale = canvas.width / timeline.width;
  var tall = Math.round(heightOf(row) * scale);
  var column = canvas.getContext("2d").getImageData(Math.round((timeline.left + 301) * scale), Math.round(row.y * scale), 1, tall).data;
  var colours = [];
  for (var n = 0; n < tall; ++n) colours.push("#" + [0, 1, 2].map(function (part) { return column[4 * n + part].toString(16).padStart(2, "0"); }).join(""));
  put("line", colours.filter(function (of) { return of === cssColour("accent"); }).length <= tall / 4);
  put("band", colours.filter(function (of) { return of !== cssColour("page"); }).length > tall / 2);
)";

/// Records which columns of the table of operations are visible at the page's width.
inline constexpr const char* look_at_columns = R"(
  var heads = function () { return Array.from(document.querySelectorAll("#ops thead th"))
    .filter(function (of) { return of.offsetWidth > 0; }).map(function (of) { return of.textContent; }).join(", "); };
  var button = document.querySelector("#ops-title").parentElement.querySelector("button.all-columns");
  var box = document.getElementById("ops").parentElement;
  put("button", button.offsetWidth > 0);
  put("columns", heads());
  put("scrolls", box.scrollWidth > box.clientWidth + 1);
  button.click();
  put("all_columns", heads().split(", ").length);
  button.click();
  put("again", heads());
)";

/// Records the critical path, which is outlined in the timeline: its segments on each thread, and
/// the color of the outline at the ends of a segment.
inline constexpr const char* look_at_path = R"(
  var path = timeline.path;
  var length = 0;
  var overlaps = 0;
  var all = [];
  path.tracks.forEach(function (row, track) {
    for (var i = 0; i < row.length; ++i) { all.push([row.start[i], row.end[i], track]); length += row.duration(i); } });
  all.sort(function (a, b) { return a[0] - b[0]; });
  all.forEach(function (of, i) { if (i && of[0] < all[i - 1][1]) ++overlaps; });
  put("segments", all.length);
  put("overlaps", overlaps);
  put("of_the_run", Math.round(100 * length / timeline.run.verdict.run_ns));
  var widest = all.slice().sort(function (a, b) { return (b[1] - b[0]) - (a[1] - a[0]); })[0];
  var lane = timeline.laneOf(widest[2]);
  put("of_a_worker", /worker/.test(lane.title));
  timeline.look(widest[0] - 1e6, widest[1] + 1e6);
  var ink = function (x) {
    var scale = canvas.width / timeline.width;
    var at = canvas.getContext("2d").getImageData(Math.round(x * scale) - 2, Math.round((lane.y + lane.bottom) / 2 * scale), 5, 1).data;
    var found = false;
    for (var i = 0; i < at.length; i += 4) {
      found = found || "#" + [0, 1, 2].map(function (n) { return at[i + n].toString(16).padStart(2, "0"); }).join("") === cssColour("ink"); }
    return found; };
  put("outlined", ink(timeline.x(widest[0]) + 1) && ink(timeline.x(widest[1]) - 1));
  put("not_elsewhere", !ink(timeline.x((widest[0] + widest[1]) / 2 + 7e5)) || !ink(timeline.x((widest[0] + widest[1]) / 2 - 7e5)));
  put("told", text("timeline-help").indexOf("The outlined parts are what the run waited for.") >= 0);
)";

/// For a page with several runs: records the sorted table of runs, and the links to one of them.
inline constexpr const char* look_at_runs = R"(
  var screen = document.getElementById("verdicts");
  var rows = function () { return Array.from(screen.querySelectorAll("tbody tr")).slice(0, report.runs.length)
    .map(function (row) { return row.children[0].textContent + " " + row.children[2].textContent; }).join("; "); };
  put("rows", rows());
  put("cards_open", Array.from(screen.querySelectorAll("details")).filter(function (of) { return of.open; }).length);
  put("cards", screen.querySelectorAll("details > .verdict").length);
  Array.from(screen.querySelectorAll("button.sort")).find(function (of) { return of.textContent === "took"; }).click();
  put("sorted", rows());
  Array.from(screen.querySelectorAll("tbody button.link")).find(function (of) { return of.textContent === "r2"; }).click();
  later = later.then(function () { return new Promise(function (done) { setTimeout(done, 300); }); })
    .then(function () { put("shown_run", timeline.run.name); });
)";

/// Sends key presses to the element that has the focus, as a keyboard does.
inline constexpr const char* press_without_clicking = R"(
  var press = function (name, shift) {
    return !document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, shiftKey: !!shift, bubbles: true, cancelable: true })); };
  var wide = function () { return Math.round(timeline.to - timeline.from); };
  var all = wide();
  put("begins_at", document.activeElement.tagName);
  put("on_body", press("w") && wide() < all);
  document.getElementById("zoom-all").focus();
  put("on_button", press("s") && wide() === all);
  put("button_keeps_enter", !press("Enter") && !press(" "));
  put("arrows_scroll", !press("ArrowDown") && wide() === all);
  var box = document.getElementById("search");
  press("/");
  put("field_keeps_letters", document.activeElement === box && !press("w") && !press("?") && wide() === all);
  document.getElementById("functions-source").parentElement.parentElement.parentElement.hidden = false;
  document.getElementById("functions-source").focus();
  put("choice_keeps_letters", document.activeElement.tagName === "SELECT" && !press("w"));
  box.focus();
  box.value = "worker";
  box.dispatchEvent(new Event("input"));
  put("threads_found", text("search-result"));
  var walk = [];
  [[false], [false], [false], [true]].forEach(function (of) { press("Enter", of[0]); walk.push(text("search-result")); });
  put("walk", walk.join("; "));
  put("boxed", document.querySelectorAll("#boxes .here").length);
  box.focus();
  box.value = "r";
  box.dispatchEvent(new Event("input"));
  walk = [];
  [false, false, true].forEach(function (shift) {
    press("Enter", shift);
    walk.push(text("search-result") + " " + timeline.selection.name);
  });
  put("results", walk.join("; "));
  put("focus_is_in_timeline", document.activeElement === canvas);
  press("n");
  put("n_goes_to_next", timeline.selection.name);
  workbench.selection.batch(3);
  press("n");
  put("own_selection", timeline.selection.kind);
)";

/// Opens the list of keys. Checks that every key in the list has an effect, and that no other key
/// has one.
inline constexpr const char* look_at_keys = R"(
  var dialog = document.getElementById("keys");
  var press = function (name, shift) {
    return !document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, shiftKey: !!shift, bubbles: true, cancelable: true })); };
  document.getElementById("fold").focus();
  put("opens", press("?") && dialog.open && dialog.matches(":modal"));
  put("named", document.getElementById(dialog.getAttribute("aria-labelledby")).textContent);
  put("focus_inside", dialog.contains(document.activeElement));
  var zoomed = timeline.to - timeline.from;
  put("others_wait", !press("w") && timeline.to - timeline.from === zoomed);
  put("list", document.getElementById("keys-list").innerText.replace(/\s+/g, " "));
  put("rows", dialog.querySelectorAll("tbody tr").length === workbench.keys.table.length);
  put("named_keys", Array.from(dialog.querySelectorAll("kbd")).map(function (of) { return of.textContent; }).join(" "));
  put("closes", press("Escape") && !dialog.open);
  put("focus_returns", document.activeElement === document.getElementById("fold"));
  document.getElementById("keys-open").click();
  put("by_button", dialog.open);
  document.getElementById("keys-close").click();
  put("closed_by_button", !dialog.open);
  canvas.focus();
  var names = [];
  for (var code = 33; code < 127; ++code) names.push(String.fromCharCode(code));
  names.push("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Escape", "Tab", "Delete", "F1");
  put("acting", names.filter(function (name) {
    var acts = press(name);
    if (dialog.open) dialog.close();
    canvas.focus();
    return acts; }).join(" "));
)";

inline constexpr const char* touch = R"(
  var finger = function (id) { return { pointerType: "touch", pointerId: id }; };
  var all = seenNow();
  pointer("pointerdown", 100, 60, finger(1));
  pointer("pointerdown", 200, 60, finger(2));
  pointer("pointermove", 300, 60, finger(2));
  put("pinched", Math.round((all[1] - all[0]) / (timeline.to - timeline.from) * 100));
  pointer("pointerup", 100, 60, finger(1));
  pointer("pointerup", 300, 60, finger(2));
  put("pinch_selects_nothing", document.getElementById("selection").hidden);
  var from = timeline.from;
  drag(200, 150, 60, finger(3));
  put("finger_moves", timeline.from > from && document.getElementById("selection").hidden);
  timeline.all();
  var row = laneOf("worker 22632").rows[0];
  click(middleOf(row, 0), row.y + 4, finger(4));
  put("tapped", text("selection").slice(0, 8));
  put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
)";

/// Selects everything on the page, both by clicks and by name. No name may be interpreted as HTML.
inline constexpr const char* touch_everything = R"(
  timeline.lanes.forEach(function (lane) { lane.rows.forEach(function (row) {
    for (var i = 0; i < row.length; ++i) {
      pointer("pointermove", middleOf(row, i), row.y + 4);
      click(middleOf(row, i), row.y + 4);
    } }); });
  report.op_names.forEach(function (name) {
    workbench.search.text = shownName(name);
    workbench.search.next(1);
    workbench.selection.range(0, timeline.span);
    workbench.selection.operation(shownName(name));
    put("told", text("selection").slice(0, 34));
  });
  put("images", document.images.length);
  put("scripts", document.scripts.length);
  put("title", document.title);
)";

inline constexpr const char* look_at_stages = R"(
  workbench.selection.batch(3);
  put("life", text("selection"));
)";

inline constexpr const char* look_at_items = R"(
  workbench.selection.batch(3);
  put("life", text("selection"));
  workbench.selection.operation("Read");
  put("operation", text("selection"));
  put("batches", text("batches"));
)";

inline constexpr const char* look_at_lanes = R"(
  put("collapsed", timeline.lanes.filter(function (lane) { return lane.collapsed; }).length);
  put("height", canvas.clientHeight);
)";

inline constexpr const char* look_at_state = R"(
  put("seen", seenNow().map(Math.round).join("-"));
  put("selection", text("selection").slice(0, 8));
  put("sorted", (document.querySelector("#ops [aria-sort]") || document.body).textContent);
)";

inline constexpr const char* print_and_return = R"(
  var corner = function () {
    return Array.from(canvas.getContext("2d").getImageData(canvas.width - 3, canvas.height - 2, 1, 1).data).slice(0, 3).join(","); };
  put("screen", corner() + " " + cssColour("page"));
  window.dispatchEvent(new Event("beforeprint"));
  put("paper", corner() + " " + cssColour("page"));
  window.dispatchEvent(new Event("afterprint"));
  put("screen_again", corner() + " " + cssColour("page"));
)";

inline constexpr const char* look_at_comparison = R"(
  put("shown", !document.getElementById("compare-part").hidden);
  put("sentence", text("compare-sentence"));
  put("table", text("compare-table"));
  put("different", text("compare-facts"));
  var chart = document.getElementById("compare-chart");
  put("chart", chart.width * chart.height > 0);
  var choice = document.getElementById("compare-choice");
  if (choice.options.length) {
    choice.selectedIndex = choice.options.length - 1;
    choice.dispatchEvent(new Event("change"));
    put("chart_of", comparisonChart.options.scales.y.title.text);
  }
  put("width_fits", document.documentElement.scrollWidth <= window.innerWidth);
)";

/// Checks the rules of axe-core, which must come before this script. The script must wait for
/// axe-core, because Chromium's virtual time does not.
inline constexpr const char* look_with_axe = R"(
  workbench.selection.batch(0);
  later = axe.run().then(function (found) {
    put("violations", found.violations.length ? found.violations.map(function (of) {
      return of.id + ": " + of.nodes.map(function (node) { return node.target; }).join(" "); }).join("; ") : "none");
    put("passes", found.passes.length);
  });
)";

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_OPERATING_SCRIPTS_HPP
