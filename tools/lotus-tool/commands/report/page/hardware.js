// Draws the functions and the hardware counters of the operations.
"use strict";

const mostFunctions = 9;  // number of functions that have their own color

/** Shortens a long name: keeps its beginning and its end. */
function shortName(text) {
  const room = window.innerWidth < 720 ? 30 : 60;
  return text.length > room ? text.slice(0, 0.6 * room) + "…" + text.slice(-0.35 * room) : text;
}

function functionOf(key) { return key.slice(0, key.lastIndexOf("|")); }

function moduleOf(key) { return key.slice(key.lastIndexOf("|") + 1); }

/** Returns a function's name for the legend. A name in brackets, such as "[unknown]", stands for code without a symbol,
 * so the name of the module is added. */
function legendName(key) {
  return shortName(key.startsWith("[") ? functionOf(key) + " " + moduleOf(key) : functionOf(key));
}

function chosen(id) { return Number(byId(id).value); }

function fillChoice(id, names, onChange) {
  const select = byId(id);
  select.replaceChildren(...names.map((name, i) => new Option(name, String(i))));
  select.onchange = onChange;
}

/** Returns the source of a run's functions: its own samples if there are any, or else a mapping; undefined if there is
 * neither. */
function functionsSource(run) {
  const sources = report.hardware.functions;
  return sources.find((of) => of.of_run && of.name === run.name) || sources.find((of) => !of.of_run);
}

/** Returns the functions with the largest share in any operation. */
function mainFunctions(ops) {
  const shares = new Map();
  for (const op of ops) {
    for (const [name, value] of op.functions) {
      shares.set(name, Math.max(shares.get(name) || 0, op.total ? value / op.total : 0));
    }
  }
  return [...shares].sort((a, b) => b[1] - a[1]).slice(0, mostFunctions).map(([name]) => name);
}

function functionChart() {
  const { ops, unit } = report.hardware.functions[chosen("functions-source")];
  const share = (op, value) => op.total ? 100 * value / op.total : 0;
  const value = (op, name) => (op.functions.find(([known]) => known === name) || [name, 0])[1];
  const names = mainFunctions(ops);
  const others = (op) => op.total - names.reduce((sum, name) => sum + value(op, name), 0);
  const bars = (label, background, data) => ({ label, backgroundColor: background, data, maxBarThickness: 34 });
  const datasets = names.map((name, i) =>
    bars(legendName(name), colour(i), ops.map((op) => share(op, value(op, name)))));
  datasets.push(bars("others", cssColour("batch"), ops.map((op) => share(op, others(op)))));
  const settings = options(axis("% of the operation's " + unit, { stacked: true, min: 0, max: 100 }),
    axis("", { stacked: true }), true);
  settings.indexAxis = "y";
  settings.plugins.legend.position = "bottom";
  byId("functions-box").style.height = 190 + 34 * ops.length + "px";
  return new Chart(byId("functions"),
    { type: "bar", data: { labels: ops.map((op) => shortName(op.name)), datasets }, options: settings });
}

function functionTable() {
  const source = report.hardware.functions[chosen("functions-source")];
  const table = byId("functions-table");
  table.replaceChildren();
  const row = (cells) => {
    const line = element("tr");
    cells.forEach((text, i) => {
      const cell = element("td", text, i < 3 ? "text" : undefined);
      if (i < 3) cell.title = text;
      line.append(cell);
    });
    body.append(line);
  };
  const titles = element("tr");
  [["operation", "Where the functions were found"], ["function", "Name of the function; point at it to see the full name"],
    ["module", "The library or program that contains the function"],
    [source.unit, "How many of the operation's " + source.unit + " belong to the function"],
    ["share", "The function's share of the operation's " + source.unit]].forEach(([title, tip], i) => {
    const cell = headCell(title, tip);
    if (i < 3) cell.className = "text";
    titles.append(cell);
  });
  const body = element("tbody");
  table.append(element("thead", titles), body);
  for (const op of source.ops) {
    op.functions.forEach(([key, value], i) => {
      row([i ? "" : op.name, functionOf(key), moduleOf(key), Number(value.toPrecision(6)),
        percent(op.total ? value / op.total : 0)]);
    });
    if (op.more) row(["", "… " + op.more + " more", "", "", ""]);
  }
  byId("functions-note").textContent = source.note;
}

function counterChart() {
  const counter = report.hardware.counters[chosen("counters-choice")];
  return new Chart(byId("counters"), {
    type: "bar",
    data: {
      labels: counter.configs,
      datasets: counter.ops.map((op) => ({
        label: op.name, backgroundColor: operationFill(byId("counters").getContext("2d"), op.name), maxBarThickness: 90,
        data: op.values,
      })),
    },
    options: options(axis("configuration", { stacked: true }),
      axis(counter.name, { stacked: true, beginAtZero: true, ticks: {
        color: cssColour("quiet"),
        callback: (value) => value.toLocaleString("en", { notation: "compact" }),
      } }), true),
  });
}

function hardwareCharts() {
  const drawn = [];
  if (report.hardware.functions.length) drawn.push(functionChart());
  if (report.hardware.counters.length) drawn.push(counterChart());
  return drawn;
}

function showHardware() {
  const { functions, counters } = report.hardware;
  byId("functions-part").hidden = functions.length === 0;
  byId("counters-part").hidden = counters.length === 0;
  fillChoice("functions-source", functions.map((source) => source.name), () => {
    functionTable();
    drawCharts();
  });
  fillChoice("counters-choice", counters.map((counter) => counter.name), drawCharts);
  if (functions.length) functionTable();
}
