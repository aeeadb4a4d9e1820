// Builds the page: first the first screen, then the timeline and the charts.
"use strict";

function showLegend() {
  const legend = byId("legend");
  const entry = (name, background, kind) => {
    const item = element("li");
    const box = element("i", undefined, kind);
    box.style.background = background;
    item.append(box, name);
    legend.append(item);
  };
  entry("preprocessing", "var(--batch)");
  entry("wait", "repeating-linear-gradient(135deg, var(--wait) 0 3px, var(--wait-stripe) 3px 4.5px)");
  entry("step", "var(--step)");
  entry("out-of-order arrival", "linear-gradient(to bottom right, var(--arrival) 50%, transparent 50%)");
  if (report.runs.some((run) => run.path.segments)) {
    entry("outlined: what the run waited for", "none", "outlined");
  }
  const intervals = report.runs.flatMap((run) => run.timeline.tracks).flatMap((track) => track.off_cpu || []);
  const reasons = new Set(intervals.map(([, , reason]) => reason));
  reasonNames.forEach((name, i) => { if (reasons.has(i)) entry(name, "var(--" + reasonColours[i] + ")"); });
  if (report.runs.some((run) => run.timeline.arrows.length)) {
    entry("→ from where a batch was ready to its next step", "linear-gradient(var(--accent), var(--accent)) center / 100% 2px no-repeat");
  }
  // If there are very many operations, those with the most time suffice.
  const most = 60;
  const times = new Map();
  for (const op of report.runs.flatMap((run) => run.ops)) times.set(op.name, (times.get(op.name) || 0) + op.self_ns);
  const names = report.op_names.length <= most ? report.op_names :
    [...report.op_names].sort((a, b) => (times.get(b) || 0) - (times.get(a) || 0)).slice(0, most);
  names.forEach((name) => entry(shownName(name), operationBackground(shownName(name))));
  if (names.length < report.op_names.length) legend.append(element("li", "and " + grouped(report.op_names.length - names.length) + " other operations"));
}

const workbench = new Workbench();
const timeline = workbench.timeline;
const speedCurve = new SpeedCurve();
const aligned = new AlignedTimeline(timeline, (run) => chooseRunOf(run));
workbench.onPicture = () => aligned.follow();
const icicle = new Icicle(byId("icicle"), byId("icicle-shown"), byId("icicle-functions"), (name) => workbench.selection.operation(name));
let pageState = undefined;

/** Gives the browser time to react to the user. */
function pause() { return new Promise((resolve) => setTimeout(resolve)); }

/** Runs a generator, and pauses after every 30 ms of work, so that the page can react to the user.
 * @returns {Promise<any>} the result of the generator */
async function inSteps(work) {
  let begun = performance.now();
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - begun < 30) continue;
    await pause();
    begun = performance.now();
  }
}

/** Shows another run. Stores the result of layOut() in the run, so that it is computed only once. */
async function chooseRun(number) {
  const run = report.runs[number];
  byId("run").value = number;
  const other = aligned.otherThan(run);
  for (const one of other ? [run, other] : [run]) one.laidOut = one.laidOut || await inSteps(layOut(one));
  aligned.show(undefined);
  timeline.leastSpan = other ? other.timeline.span_ns : 0;
  workbench.show(run, run.laidOut);
  aligned.show(other, other && other.laidOut);
  await pause();
  showBatches(timeline, (place) => {
    workbench.selection.batch(place);
    workbench.canvas.scrollIntoView({ block: "nearest" });
  });
  icicle.show(run.timeline.calls, functionsSource(run));
}

async function chooseRunOf(run) {
  if (run !== timeline.run) await chooseRun(report.runs.indexOf(run));
}

/** Reads all data that is not on the first screen, which is most of the page. */
function readRest() {
  const rest = JSON.parse(byId("data").textContent);
  rest.runs.forEach((run, i) => Object.assign(report.runs[i], run));
  report.hardware = rest.hardware;
  report.thread_stacks = rest.thread_stacks;
}

async function showRest() {
  readRest();
  await pause();
  const [pair] = comparedPairs();
  if (report.runs.length) speedCurve.show(pair ? pair.before : report.runs[0]);
  showResult(predictedForSecond);
  await pause();
  showThreads();
  if (!report.runs.length) return showOnlyThreads();
  const choice = byId("run");
  fillChoice("run", report.runs.map((run) => run.name), async () => {
    await chooseRun(Number(choice.value));
    if (report.runs.length === 1) drawCharts();
  });
  byId("run-choice").hidden = report.runs.length < 2;
  const operations = showOperations(async (name, run) => {
    await chooseRunOf(run);
    workbench.selection.operation(name);
    workbench.canvas.scrollIntoView({ block: "nearest" });
  });
  showAggregated();
  showStages();
  showAsync();
  showLegend();
  showHardware();
  await pause();
  await chooseRun(0);
  byId("icicle-all").addEventListener("click", () => icicle.draw([icicle.root]));
  showComparison();
  await pause();
  await inSteps(drawChartsInSteps());
  pageState = new PageState({
    run: { get: () => report.runs.length > 1 ? choice.value : undefined,
      set: (text) => { if (report.runs[Number(text)] && text !== choice.value) return chooseRun(Number(text)); } },
    ...workbench.state(),
    sort: { get: () => operations.state, set: (text) => { operations.state = text; } },
  });
  // If the address refers to something in the timeline, scroll to the timeline.
  if (/(^#|&)(at|batch|op|range|q)=/.test(location.hash)) byId("timeline-title").scrollIntoView();
  await pageState.read();
  workbench.onState = operations.onSort = () => pageState.changed();
  goTo = async (run, target) => {
    await chooseRunOf(run);
    showTarget(workbench, target);
  };
  if (wanted) await goTo(wanted.run, wanted.target);
}

function redraw() {
  if (pageState) timeline.draw();
}

function recolour() {
  cssColours = new Map();
  timeline.painter.forget();
  aligned.other.painter.forget();
  showVerdicts();
  redraw();
  if (!pageState) return;
  drawCharts();
  speedCurve.draw();
  showResult(predictedForSecond);
}

/** Calls `act` after the browser has drawn the page, or after 500 ms, because a hidden page is never drawn. */
function afterPicture(act) {
  let done = false;
  const once = () => { if (!done) { done = true; act(); } };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 500);
}

/** Draws the page again: if `is` is true, with colors for paper, which is always light; otherwise with those for the
 * screen. */
function onPaper(is) {
  document.documentElement.classList.toggle("printed", is);
  recolour();
}

window.addEventListener("beforeprint", () => onPaper(true));
window.addEventListener("afterprint", () => onPaper(false));
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
/** A promise that is fulfilled when the whole page is ready. */
const pageReady = new Promise((resolve) => afterPicture(() => resolve(showRest())));
