// How the browser test of the report works with a page: by mouse, fingers, keys and address.
#ifndef LOTUS_TESTS_OPERATING_SCRIPTS_HPP
#define LOTUS_TESTS_OPERATING_SCRIPTS_HPP

#include <string>

namespace lotus::tool_test {

/// A script that acts on a page when all of it is there; `put(key, value)` tells.
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

inline constexpr const char* select_and_tell = R"(
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
  put("brushed", text("selection").indexOf("Shown above: those that took 177.8 µs to 316.2 µs") >= 0);
  bars()[2].dispatchEvent(new MouseEvent("click", { shiftKey: true }));
  put("brushed_wider", text("selection").indexOf("Shown above: those that took 177.8 µs to 1 ms") >= 0);
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
  workbench.selection.batch(timeline.lives.byIndex.get(40)[0]);
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
  put("icicle", text("icicle-told"));
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

/// Selects all that there is, by clicks and by name; nothing of it may become markup.
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

/// Rules of axe-core, which stands before this; Chromium's virtual time does not wait for it by
/// itself.
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
