// Builds the page: the first screen is shown first, the timeline and the charts follow.
"use strict";

function showLegend() {
  const legend = byId("legend");
  const entry = (name, background) => {
    const item = element("li");
    const box = element("i");
    box.style.background = background;
    item.append(box, name);
    legend.append(item);
  };
  entry("preprocessing", "var(--batch)");
  entry("wait", "repeating-linear-gradient(135deg, var(--wait) 0 3px, var(--wait-stripe) 3px 4.5px)");
  entry("step", "var(--step)");
  entry("out-of-order arrival", "linear-gradient(to bottom right, var(--arrival) 50%, transparent 50%)");
  const stretches = report.runs.flatMap((run) => run.timeline.tracks).flatMap((track) => track.off_cpu || []);
  const reasons = new Set(stretches.map(([, , reason]) => reason));
  reasonNames.forEach((name, i) => { if (reasons.has(i)) entry(name, "var(--" + reasonColours[i] + ")"); });
  if (report.runs.some((run) => run.timeline.arrows.length)) {
    entry("→ from ready to where it went", "linear-gradient(var(--accent), var(--accent)) center / 100% 2px no-repeat");
  }
  report.op_names.forEach((name) => entry(shownName(name), operationBackground(shownName(name))));
}

const workbench = new Workbench();
const timeline = workbench.timeline;
const icicle = new Icicle(byId("icicle"), byId("icicle-told"), byId("icicle-functions"), (name) => workbench.selection.operation(name));
let pageState = undefined;

function chooseRun(number) {
  byId("run").value = number;
  workbench.show(report.runs[number]);
  icicle.show(timeline.lanes, functionsSource(report.runs[number]));
}

/** Everything that is not on the first screen: most of the page's bytes. */
function readRest() {
  const rest = JSON.parse(byId("data").textContent);
  rest.runs.forEach((run, i) => Object.assign(report.runs[i], run));
  report.hardware = rest.hardware;
}

function showRest() {
  readRest();
  const choice = byId("run");
  fillChoice("run", report.runs.map((run) => run.name), () => {
    chooseRun(Number(choice.value));
    if (report.runs.length === 1) drawCharts();
  });
  byId("run-choice").hidden = report.runs.length < 2;
  const operations = showOperations((name, run) => {
    if (run !== timeline.run) chooseRun(report.runs.indexOf(run));
    workbench.selection.operation(name);
    workbench.canvas.scrollIntoView({ block: "nearest" });
  });
  showAggregated();
  showStages();
  showAsync();
  showLegend();
  showHardware();
  chooseRun(0);
  byId("icicle-all").addEventListener("click", () => icicle.draw([icicle.root]));
  showComparison();
  drawCharts();
  pageState = new PageState({
    run: { get: () => report.runs.length > 1 ? choice.value : undefined,
      set: (text) => { if (report.runs[Number(text)] && text !== choice.value) chooseRun(Number(text)); } },
    ...workbench.state(),
    sort: { get: () => operations.state, set: (text) => { operations.state = text; } },
  });
  // If the address contains a time, show the timeline there.
  if (/(^#|&)(at|batch|op|range|q)=/.test(location.hash)) byId("timeline-title").scrollIntoView();
  pageState.read();
  workbench.onState = operations.onSort = () => pageState.changed();
}

function redraw() {
  if (pageState) timeline.draw();
}

function recolour() {
  cssColours = new Map();
  timeline.painter.forget();
  showVerdicts();
  redraw();
  if (pageState) drawCharts();
}

/** Runs `act` after the browser has drawn the page; a page that is not visible is never drawn, so a timer helps. */
function afterPicture(act) {
  let done = false;
  const once = () => { if (!done) { done = true; act(); } };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 500);
}

/** Paper is always light, so everything that is drawn in colors is drawn again for printing. */
function onPaper(is) {
  document.documentElement.classList.toggle("printed", is);
  recolour();
}

window.addEventListener("beforeprint", () => onPaper(true));
window.addEventListener("afterprint", () => onPaper(false));
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
/** Resolves when the whole page is ready. */
const pageReady = new Promise((resolve) => afterPicture(() => { showRest(); resolve(); }));
