// Text parts of the report: verdicts and the table of operations. Names come from logs and may hold
// anything, so they only ever become text nodes.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const palette = ["#4e79a7", "#f28e2b", "#76b7b2", "#b07aa1", "#edc948", "#59a14f", "#ff9da7", "#9c755f",
  "#86bcb6", "#d37295", "#8cd17d", "#b6992d"];

function colour(i) { return palette[i % palette.length]; }

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** A duration in ns with a fitting unit. */
function humanTime(ns) {
  if (ns === null || ns === undefined) return "–";
  const size = Math.abs(ns);
  if (size === 0) return "0";
  const units = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  let unit = units[0];
  for (const u of units) if (size >= u[0]) unit = u;
  return Number((ns / unit[0]).toPrecision(4)) + " " + unit[1];
}

function percent(share) { return (share * 100).toFixed(1) + " %"; }

function element(kind, text, className) {
  const e = document.createElement(kind);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

function showVerdicts() {
  const place = document.getElementById("verdicts");
  for (const run of report.runs) {
    const box = element("div", undefined, "verdict");
    box.append(element("p", run.verdict ? run.verdict.sentence : run.no_verdict, "sentence"));
    if (report.runs.length > 1) box.append(element("p", run.name, "run"));
    const facts = element("ul", undefined, "facts");
    const fact = (name, value) => {
      const item = element("li", name + " ");
      item.append(element("b", value));
      facts.append(item);
    };
    fact("batches", run.batch_count);
    if (run.verdict) {
      const v = run.verdict;
      fact("workers", v.workers);
      fact("waiting", percent(v.wait_share));
      fact("of it behind later batches", percent(v.head_of_line_share));
      if (v.preprocessing_capacity !== null) {
        fact("workers could make", Number(v.preprocessing_capacity.toPrecision(3)) + " batches/s");
      }
      if (v.consumer_capacity !== null) {
        fact("consumer could take", Number(v.consumer_capacity.toPrecision(3)) + " batches/s");
      }
      if (v.ops.length && v.ops[0].at_most_faster !== null) {
        fact("attack first", v.ops[0].name + ", at most " + v.ops[0].at_most_faster.toFixed(2) + "×");
      }
    }
    box.append(facts);
    place.append(box);
  }
  document.getElementById("about").textContent =
    report.runs.length === 1 ? report.runs[0].dir : report.runs.length + " runs";
}

/** A small histogram as an SVG; `counts` by bins of equal ratio. */
function histogram(counts, fill) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("width", counts.length * 6);
  svg.setAttribute("height", 22);
  const most = Math.max(...counts, 1);
  counts.forEach((count, i) => {
    if (!count) return;
    const height = Math.max(1, 22 * count / most);
    const bar = document.createElementNS(ns, "rect");
    for (const [key, value] of [["x", i * 6], ["y", 22 - height], ["width", 5], ["height", height],
      ["fill", fill]]) bar.setAttribute(key, value);
    svg.append(bar);
  });
  return svg;
}

function showOperations() {
  const table = document.getElementById("ops");
  const head = element("tr");
  for (const title of ["operation", "count", "mean", "p50", "p90", "p99", "max", "< 10 ms", "< 100 µs",
    "total", "self", "distribution"]) head.append(element("th", title));
  table.append(head);
  for (const run of report.runs) {
    if (report.runs.length > 1) {
      const row = element("tr", undefined, "run");
      const cell = element("td", run.name);
      cell.colSpan = 12;
      row.append(cell);
      table.append(row);
    }
    for (const op of run.ops) {
      const row = element("tr");
      const name = element("td", op.name, "name");
      name.title = op.name;
      row.append(name, element("td", op.count));
      for (const key of ["mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"]) {
        row.append(element("td", humanTime(op[key])));
      }
      row.append(element("td", percent(op.below_10ms)), element("td", percent(op.below_100us)),
        element("td", humanTime(op.total_ns)), element("td", humanTime(op.self_ns)));
      const bars = element("td");
      bars.append(histogram(op.histogram, colour(report.op_names.indexOf(op.name))));
      row.append(bars);
      table.append(row);
    }
  }
}
