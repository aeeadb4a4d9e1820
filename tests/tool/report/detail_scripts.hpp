// Scripts with which the browser test examines single durations, slices, lanes and functions.
#ifndef LOTUS_TESTS_DETAIL_SCRIPTS_HPP
#define LOTUS_TESTS_DETAIL_SCRIPTS_HPP

namespace lotus::tool_test {

/// Functions that are shared by the scripts that test histograms.
inline constexpr const char* on_histogram = R"(
  var svg = function () { return document.querySelector("#selection svg.histogram"); };
  var bars = function () { return Array.from(svg().querySelectorAll("[role=button]")); };
  var on = function (kind, x) {
    svg().dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: svg().getBoundingClientRect().top + 40, pointerId: 1, bubbles: true }));
  };
  var brush = function (x, x2) {
    on("pointerdown", x);
    on("pointermove", (x + x2) / 2);
    on("pointermove", x2);
    var band = Number(svg().querySelector(".brush").getAttribute("width"));
    on("pointerup", x2);
    return band;
  };
  var middle = function (bar) { var box = bar.getBoundingClientRect(); return (box.left + box.right) / 2; };
  var note = function () { return Array.from(document.querySelectorAll("#selection .note")).map(function (p) { return p.textContent; }).join(" "); };
  var axisButton = function () { return document.querySelector("#selection [data-key=axis]"); };
  var ticks = function () { return Array.from(svg().querySelectorAll("path + text")).map(function (of) { return of.textContent; }); };
  var shownSlices = function () {
    return timeline.lanes.flatMap(function (lane) { return lane.rows; }).filter(function (row) { return row.kind === "operations"; })
      .reduce(function (sum, row) { return sum + timeline.emphasis.placesIn(row).length; }, 0); };
  var counted = function (took) {
    var known = timeline.run.ops.find(function (op) { return op.name === "SLoader"; }).histogram;
    return known.counts.reduce(function (sum, n, i) { return sum + (known.first + i >= took[0] && known.first + i < took[1] ? n : 0); }, 0); };
)";

/// Selects durations in the histogram with the mouse. Must come after on_histogram.
inline constexpr const char* brush_histogram = R"(
  workbench.selection.operation("Loader");
  put("all", shownSlices());
  put("bars", bars().length);
  put("ticks", ticks().join(" "));
  var [from, to] = [middle(bars()[2]), middle(bars()[5])];
  put("band", brush(from, to) > to - from);
  var took = timeline.selection.took;
  put("note", note());
  put("shown_is_counted", shownSlices() === counted(took) && counted(took) > 0 && counted(took) < 600);
  put("slowest_within", timeline.selection.slowest.every(function (of) { return of.row.duration(of.i) < binEdge(took[1]); }));
  put("backwards_too", brush(to, from) > 0 && String(timeline.selection.took) === String(took));
  axisButton().focus();
  axisButton().click();
  put("zoomed_bars", bars().length);
  put("zoomed_ticks", ticks().join(" "));
  put("zoomed_within", bars().every(function (bar) { var bin = Number(bar.dataset.key.slice(3)); return bin >= took[0] && bin < took[1]; }));
  put("zoom_keeps", String(timeline.selection.took) === String(took));
  put("focus_stays", document.activeElement === axisButton() && axisButton().textContent);
  var zoomed = bars();
  brush(middle(zoomed[0]), middle(zoomed[1]));
  put("finer", timeline.selection.took[1] - timeline.selection.took[0] < took[1] - took[0] && shownSlices() === counted(timeline.selection.took));
  Array.from(document.querySelectorAll("#selection [data-key=axis]")).pop().click();
  put("whole_again", ticks().join(" "));
  bars()[0].focus();
  var press = function (name, shift) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, shiftKey: shift, bubbles: true, cancelable: true })); };
  press("ArrowRight");
  put("arrow_goes_on", document.activeElement === bars()[1]);
  press("Enter");
  put("by_key", note());
  put("key_focus_stays", document.activeElement === bars()[1]);
  press("ArrowRight");
  press("Enter", true);
  put("by_shift", note());
  put("pressed", bars().filter(function (bar) { return bar.getAttribute("aria-pressed") === "true"; }).length);
  put("one_tab_stop", bars().filter(function (bar) { return bar.tabIndex === 0; }).length);
  Array.from(document.querySelectorAll("#selection button")).find(function (b) { return b.textContent === "all durations"; }).click();
  put("all_again", timeline.selection.took === undefined && shownSlices());
  workbench.selection.operation("Loader", undefined, [192, 240]);
  workbench.selection.slowest(1);
  timeline.all();
)";

inline constexpr const char* look_at_durations = R"(
  put("note", note());
  put("shown_is_counted", shownSlices() === counted(timeline.selection.took || [0, allBins]) && shownSlices() > 0);
  put("selection", text("selection").slice(0, 30));
)";

/// For a page that does not draw all operations: reads what the panels show about a batch and about
/// the whole run.
inline constexpr const char* sum_up = R"(
  var drawn = timeline.lanes.flatMap(function (lane) { return lane.rows; }).filter(function (row) { return row.kind === "operations"; })
    .reduce(function (sum, row) { return sum + row.length; }, 0);
  put("drawn", drawn);
  put("note", text("timeline-note"));
  var table = function () {
    return Array.from(document.querySelectorAll("#selection tbody tr")).map(function (row) {
      return Array.from(row.children).slice(0, 4).map(function (cell) { return cell.textContent; }).join(" "); }).join("; "); };
  workbench.selection.batch(timeline.histories.byIndex.get(1234)[0]);
  put("batch", table());
  workbench.selection.range(0, timeline.span);
  var sums = sumsBetween(timeline, 0, timeline.span);
  put("exact", sums.exact && document.querySelectorAll("#selection .note").length === 0);
  put("whole_is_exact", timeline.run.ops.every(function (op) {
    var sum = sums.sums.find(function (of) { return of[0] === shownName(op.name); })[1];
    return sum.count === op.count && sum.ns === op.total_ns; }));
  var histories = timeline.histories;
  var cut = sumsBetween(timeline, histories.moment(10, "started") + 1000, histories.moment(19, "ready") - 1000);
  put("cut_is_estimated", !cut.exact);
  workbench.selection.range(histories.moment(10, "started") + 1000, histories.moment(19, "ready") - 1000);
  put("says_so", text("selection").indexOf("the same part of its sums counts") > 0);
  put("icicle", Array.from(document.querySelectorAll("#icicle button")).map(function (of) { return of.title; }).join("; "));
  put("ticks", ticked);
)";

/// Must come before sum_up: counts how often the browser could react before the page was ready.
inline constexpr const char* count_answers = R"(<script>
var ticked = 0;
var ready = false;
pageReady.then(function () { ready = true; });
(function tick() { if (!ready) { ++ticked; setTimeout(tick); } })();
</script>)";

/// Reads what the table of operations shows in the column "blocked on", and presses it.
inline constexpr const char* look_at_waits = R"(
  var heads = Array.from(document.querySelectorAll("#ops thead th"));
  var at = heads.findIndex(function (head) { return head.textContent === "blocked on"; });
  var rows = function () { return Array.from(document.querySelectorAll("#ops tbody tr")); };
  put("cells", rows().map(function (row) { return row.children[0].textContent + ": " + row.children[at].textContent; }).join("; "));
  rows()[0].children[at].querySelector("button").click();
  later = later.then(function () { return new Promise(function (done) { setTimeout(done, 600); }); }).then(function () {
    put("panel", Array.from(document.querySelectorAll("#selection .waits summary, #selection .waits > p")).map(function (of) { return of.textContent; }).join("; "));
    put("calls", Array.from(document.querySelectorAll("#selection .waits li")).map(function (of) { return of.textContent; }).join(" < "));
    put("open", document.querySelector("#selection .waits details").open);
    workbench.selection.operation("constructor");
    put("others", document.querySelectorAll("#selection .waits").length);
    heads[at].querySelector("button").click();
    put("sorted", rows()[0].children[0].textContent);
  });
)";

inline constexpr const char* look_for_waits = R"(
  put("column", Array.from(document.querySelectorAll("#ops thead th")).some(function (head) { return head.textContent === "blocked on"; }));
)";

/// Returns every cell of the icicle chart: name, left end, width, and whether it is a function.
inline constexpr const char* look_at_icicle = R"(
  var cells = Array.from(document.querySelectorAll("#icicle button"));
  var number = function (text) { return Math.round(parseFloat(text) * 10) / 10; };
  put("cells", cells.map(function (cell) {
    return cell.textContent + " " + number(cell.style.left) + " " + number(cell.style.width) + " " + number(cell.style.top) +
      (cell.classList.contains("function") ? " function" : ""); }).join("; "));
  put("shown", !document.getElementById("icicle-part").hidden);
  put("note_shown", !document.getElementById("icicle-functions").hidden);
  put("note", document.getElementById("icicle-functions").textContent);
  put("images", document.images.length);
  var functions = cells.filter(function (cell) { return cell.classList.contains("function"); });
  if (functions.length) {
    var style = getComputedStyle(functions[0]);
    put("style", style.borderTopStyle + " " + style.fontStyle);
    functions[0].click();
    put("told", text("icicle-shown"));
    put("selects_nothing", document.getElementById("selection").hidden);
    cells[0].click();
    put("widened", Array.from(document.querySelectorAll("#icicle .function")).map(function (cell) { return number(cell.style.width); }).join(" "));
  }
)";

inline constexpr const char* collapse_one_lane = R"(
  var lane = laneOf("worker 22632");
  click(10, lane.y + 5);
  put("number", timeline.lanes.indexOf(lane));
)";

inline constexpr const char* look_at_shared_lanes = R"(
  put("threads", timeline.lanes.filter(function (of) { return of.threads; }).map(function (of) { return of.title; }).join("; "));
  put("batches", timeline.lanes.filter(function (of) { return of.threads; }).map(function (of) { return of.rows[0].length; }).join("; "));
  workbench.selection.batch(7);
  put("life", text("selection"));
  put("boxes", document.querySelectorAll("#boxes .box").length);
  workbench.selection.operation("Load");
  put("panel", text("selection"));
  var search = document.getElementById("search");
  search.value = "worker 112";
  search.dispatchEvent(new Event("input"));
  put("searched", text("search-result"));
  workbench.selection.range(0, timeline.span);
  put("range", text("selection"));
)";

inline constexpr const char* collapse_all_lanes = R"(
  document.getElementById("fold").click();
)";

inline constexpr const char* look_at_collapsed = R"(
  put("collapsed", timeline.lanes.map(function (lane, i) { return lane.collapsed ? i : -1; }).filter(function (i) { return i >= 0; }).join(" "));
  put("height", canvas.clientHeight);
)";

/// Moves the selection with the arrow keys, and records each place that is reached.
inline constexpr const char* step_around = R"(
  var where = function () {
    var s = timeline.selection;
    if (!s) return "nothing";
    return s.kind === "batch" ? "batch " + timeline.histories.index[s.place] : s.name + " at " + s.hit.row.start[s.hit.i] / 1e6; };
  var row = laneOf("worker 2").rows.find(function (of) { return of.kind === "operations"; });
  timeline.look(0, timeline.span / 2);
  key("ArrowRight");
  put("moves_without", where() + (timeline.from > 0 ? " and moved" : ""));
  timeline.all();
  click(middleOf(row, 0), row.y + 4);
  var told = [where()];
  ["Right", "Right", "Left", "Left", "Down", "Down", "Up", "Up", "Up"].forEach(function (to) {
    key("Arrow" + to);
    told.push(where());
  });
  put("steps", told.join("; "));
  workbench.selection.batch(timeline.histories.byIndex.get(1)[0]);
  told = [];
  ["Down", "Down", "Up", "Up"].forEach(function (to) { key("Arrow" + to); told.push(where()); });
  put("lanes", told.join("; "));
  put("here", document.querySelectorAll("#boxes .here").length);
  click(middleOf(row, 0), row.y + 4);
  timeline.look(0, 200);
  key("ArrowRight");
  var hit = timeline.selection.hit;
  put("in_view", hit.row.start[hit.i] >= timeline.from && hit.row.end[hit.i] <= timeline.to);
  timeline.look(0, timeline.span / 2);
  var before = where();
  key("d");
  put("d_moves", timeline.from > 0 && where() === before);
)";

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_DETAIL_SCRIPTS_HPP
