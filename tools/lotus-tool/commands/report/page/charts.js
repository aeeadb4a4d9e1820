// The charts that compare all runs, drawn with Chart.js.
"use strict";

const seconds = (ns) => ns / 1e9;
let charts = [];

function axis(title, extra) {
  return Object.assign({
    title: { display: true, text: title, color: cssColour("quiet") },
    ticks: { color: cssColour("quiet") },
    grid: { color: cssColour("line") },
  }, extra);
}

/** Returns an axis of times. The values are in seconds; the labels are in suitable units. @param {number} [zero] value
 * that is labeled 0, because a logarithmic axis has no 0 */
function timeAxis(title, extra, zero = -1) {
  const ticks = { color: cssColour("quiet"), maxTicksLimit: 8, callback: (value) => value <= zero ? "0" : humanTime(Number((value * 1e9).toPrecision(6))) };
  return axis(title, Object.assign({ ticks }, extra));
}

function options(x, y, legend) {
  return {
    animation: false, responsive: true, maintainAspectRatio: false,
    interaction: { mode: "nearest", intersect: false },
    scales: { x, y },
    plugins: { legend: { display: legend, labels: { color: cssColour("ink"), boxWidth: 12 } } },
  };
}

/** Draws the preprocess times as box plots, as in Fig. 4 of the Lotus paper. Chart.js has no box plots, so each box
 * consists of three floating bars. */
function boxPlots() {
  const figures = report.runs.map((run) => run.preprocess);
  const spans = (low, high) => figures.map((f) => f.count ? [seconds(f[low]), seconds(f[high])] : null);
  const most = Math.max(...figures.map((f) => f.count ? seconds(f.max_ns) : 0));
  const median = figures.map((f) => f.count
    ? [seconds(f.p50_ns) - most / 400, seconds(f.p50_ns) + most / 400] : null);
  const bars = (label, data, background, thickness) => ({
    label, data, backgroundColor: background, grouped: false, barPercentage: thickness,
    categoryPercentage: 1, skipNull: true, maxBarThickness: thickness * 90,
  });
  const settings = options(axis("configuration"), timeAxis("time of a batch", { beginAtZero: true }), false);
  settings.plugins.tooltip = { callbacks: { label: (item) => {
    const f = figures[item.dataIndex];
    return ["median " + humanTime(f.p50_ns), "middle half " + humanTime(f.p25_ns) + " to " +
      humanTime(f.p75_ns), "all " + humanTime(f.min_ns) + " to " + humanTime(f.max_ns),
    "mean " + humanTime(f.mean_ns) + ", std " + humanTime(f.std_ns)];
  } } };
  return new Chart(byId("preprocess"), {
    type: "bar",
    data: {
      labels: report.runs.map((run) => run.name),
      datasets: [bars("median", median, cssColour("ink"), 0.6),
        bars("middle half", spans("p25_ns", "p75_ns"), cssColour("accent"), 0.6),
        bars("all", spans("min_ns", "max_ns"), cssColour("quiet"), 0.02)],
    },
    options: settings,
  });
}

const runColours = ["accent", "arrival", "step", "wait", "quiet"];

/** Returns the color of a run's line. The first runs get colors that have a high contrast to the page. */
function runColour(i) { return i < runColours.length ? cssColour(runColours[i]) : colour(i); }

/** Returns how a run's line is dashed. Dashes distinguish the lines of runs whose colors are hard to tell apart. */
function runDash(i) { return [[], [6, 4], [2, 3], [9, 3, 2, 3]][i % 4]; }

/** Draws the sorted waits or delays of each run, as in Fig. 5 of the Lotus paper, with a line at 500 ms. */
function curves(id, key) {
  // A logarithmic axis has no 0, so 0 is drawn a decade below the shortest time.
  const times = report.runs.flatMap((run) => run[key]).filter((ns) => ns > 0);
  const floor = 10 ** Math.floor(Math.log10(seconds(times.length ? Math.min(...times) : 1e9)) - 1);
  const lines = report.runs.map((run, i) => ({
    label: run.name, borderColor: runColour(i), backgroundColor: runColour(i), pointRadius: 0, borderWidth: 2, borderDash: runDash(i),
    data: run[key].map((ns, n) => ({
      x: run[key].length > 1 ? 100 * n / (run[key].length - 1) : 100, y: Math.max(seconds(ns), floor),
    })),
  }));
  lines.push({
    label: "500 ms", borderColor: cssColour("bad"), borderDash: [6, 5], borderWidth: 1, pointRadius: 0,
    data: [{ x: 0, y: 0.5 }, { x: 100, y: 0.5 }],
  });
  return new Chart(byId(id), {
    type: "line",
    data: { datasets: lines },
    options: options(axis("% of the batches", { type: "linear", min: 0, max: 100 }),
      timeAxis("time", { type: "logarithmic", min: floor }, floor), true),
  });
}

function operationSeconds() {
  const settings = options(axis("configuration", { stacked: true }),
    timeAxis("time on all threads", { stacked: true, beginAtZero: true }), true);
  return new Chart(byId("cpu"), {
    type: "bar",
    data: {
      labels: report.runs.map((run) => run.name),
      datasets: report.op_names.map((name) => ({
        label: shownName(name), backgroundColor: operationFill(byId("cpu").getContext("2d"), shownName(name)), maxBarThickness: 90,
        data: report.runs.map((run) => {
          const op = run.ops.find((o) => o.name === name);
          return op ? seconds(op.self_ns) : 0;
        }),
      })),
    },
    options: settings,
  });
}

/** Draws one run batch by batch in order of consumption, which shows start-up, drift and epochs. */
function timesOverRun() {
  const histories = workbench.timeline.histories;
  const order = histories.inOrder();
  const every = Math.max(1, Math.ceil(order.length / 2000));
  const shown = order.filter((_, i) => i % every === 0);
  const points = (from, to) => shown.map((place) => ({ x: seconds(histories.moment(place, "consumed")), y: seconds(histories.between(place, from, to)) }))
    .filter((point) => !Number.isNaN(point.x) && !Number.isNaN(point.y));
  const datasets = [["preprocessing", "started", "ready", "accent", "circle"], ["wait", "waitedFrom", "waitedTo", "wait", "triangle"],
    ["step", "consumed", "stepEnd", "step", "rect"]].map(([label, from, to, fill, pointStyle]) => ({
    label, data: points(from, to), backgroundColor: cssColour(fill), borderColor: cssColour(fill), pointStyle,
    pointRadius: shown.length > 300 ? 2 : 3,
  })).filter((set) => set.data.length);
  byId("times-part").hidden = !datasets.length;
  if (!datasets.length) return [];
  const settings = options(timeAxis("time of the run at which the batch was consumed", { type: "linear", min: 0 }), timeAxis("time", { beginAtZero: true }), true);
  Object.assign(settings.plugins.legend.labels, { usePointStyle: true, boxWidth: 7, boxHeight: 7 });
  return [new Chart(byId("times"), { type: "scatter", data: { datasets }, options: settings })];
}

/** Draws charts that compare the runs. For a single run, draws its batches instead, because a chart with one bar would
 * show nothing. Yields after each chart, so that the page can react to the user meanwhile. */
function* drawChartsInSteps() {
  const several = report.runs.length > 1;
  const batches = report.runs.some((run) => Math.max(run.waits_ns.length, run.delays_ns.length) > 2);
  for (const part of document.querySelectorAll(".of-batches")) /** @type {any} */ (part).hidden = !batches;
  byId("preprocess-part").hidden = !several || !report.runs.some((run) => run.preprocess.count);
  byId("seconds-part").hidden = !several;
  byId("times-part").hidden = several;
  charts.forEach((chart) => chart.destroy());
  charts = [];
  charts.push(...(several ? [operationSeconds()] : timesOverRun()));
  yield;
  if (!byId("preprocess-part").hidden) charts.push(boxPlots());
  yield;
  if (batches) charts.push(curves("waits", "waits_ns"));
  yield;
  if (batches) charts.push(curves("delays", "delays_ns"));
  yield;
  charts.push(...heapChart());
  yield;
  charts.push(...hardwareCharts());
}

function drawCharts() {
  Array.from(drawChartsInSteps());
}
