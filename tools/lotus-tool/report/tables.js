// The tables of operations and of stages.
"use strict";

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

const time = (key) => (of) => humanTime(of[key]);

/** Columns as [title, text of a row]. */
const cpuColumns = [["on CPU", time("cpu_ns")], ["waiting for a CPU", time("run_queue_ns")],
  ["blocked for", time("blocked_ns")]];

/** Means of a call. */
const memoryColumns = [["allocated", (op) => humanBytes(op.allocated_bytes)],
  ["allocations", (op) => op.allocations === undefined ? "" : Number(op.allocations.toPrecision(3))],
  ["retained", (op) => humanBytes(op.retained_bytes)], ["most", (op) => humanBytes(op.peak_bytes)]];

/** Those of CPU time only where it was measured of any row. */
function withCpu(rows, before, after) {
  return rows.some((row) => row.cpu_ns !== undefined) ? [...before, ...cpuColumns, ...after] : [...before, ...after];
}

/** A cell may be a text or an element. */
function fillTable(table, head, columns, rowsOf) {
  const titles = element("tr");
  titles.append(element("th", head));
  for (const [title] of columns) titles.append(element("th", title));
  table.append(titles);
  for (const run of report.runs) {
    const rows = rowsOf(run);
    if (report.runs.length > 1 && rows.length) {
      const row = element("tr", undefined, "run");
      const cell = element("td", run.name);
      cell.colSpan = columns.length + 1;
      row.append(cell);
      table.append(row);
    }
    for (const of of rows) {
      const row = element("tr");
      const name = element("td", of.name, "name");
      name.title = of.name;
      row.append(name);
      for (const [, content] of columns) {
        const cell = element("td");
        cell.append(content(of));
        row.append(cell);
      }
      table.append(row);
    }
  }
}

const opColumns = [["count", (op) => op.count], ["mean", time("mean_ns")], ["p50", time("p50_ns")],
  ["p90", time("p90_ns")], ["p99", time("p99_ns")], ["max", time("max_ns")],
  ["< 10 ms", (op) => percent(op.below_10ms)], ["< 100 µs", (op) => percent(op.below_100us)],
  ["total", time("total_ns")], ["self", time("self_ns")]];

function showOperations() {
  const all = report.runs.flatMap((run) => run.ops);
  const columns = withCpu(all, opColumns,
    [...(all.some((op) => op.allocated_bytes !== undefined) ? memoryColumns : []),
      ["distribution", (op) => histogram(op.histogram, colour(report.op_names.indexOf(op.name)))]]);
  document.getElementById("memory-note").hidden = !all.some((op) => op.allocated_bytes !== undefined);
  showLeaks();
  document.getElementById("cpu-note").hidden = !all.some((op) => op.cpu_ns !== undefined);
  fillTable(document.getElementById("ops"), "operation", columns, (run) => run.ops);
}

function showAggregated() {
  const any = report.runs.some((run) => run.aggregated.length);
  document.getElementById("aggregated-part").hidden = !any;
  if (!any) return;
  fillTable(document.getElementById("aggregated"), "operation",
    [...opColumns, ["distribution", (op) => histogram(op.histogram, colour(0))]], (run) => run.aggregated);
}

function showStages() {
  const all = report.runs.flatMap((run) => run.stages);
  document.getElementById("stages-part").hidden = !all.length;
  if (!all.length) return;
  const rate = (stage) => stage.capacity_per_s === null ? "–" : Number(stage.capacity_per_s.toPrecision(3));
  const columns = withCpu(all, [["count", (stage) => stage.count], ["mean", time("mean_ns")],
    ["p50", time("p50_ns")], ["p99", time("p99_ns")], ["max", time("max_ns")], ["total", time("total_ns")]],
  [["at once", (stage) => stage.concurrency + (stage.shared ? " shared" : "")], ["could make, batches/s", rate],
    ...["busy", "starved", "blocked"].map((what) =>
      [what, (stage) => stage[what] === null ? "–" : percent(stage[what])])]);
  fillTable(document.getElementById("stages"), "stage", columns, (run) => run.stages);
  const list = document.getElementById("through-stages");
  for (const run of report.runs) {
    for (const of of run.through_stages) {
      const entry = element("li", (report.runs.length > 1 ? run.name + ": " : "") + of.count + " " + of.name +
        " from first stage to last: p50 " + humanTime(of.p50_ns) + ", p99 " + humanTime(of.p99_ns) + "; the slowest:");
      for (const it of of.slowest) entry.append(treeOf(it));
      list.append(entry);
    }
  }
}

/** An item, which unfolds into what was done to it. */
function treeOf(it) {
  const tree = element("details");
  tree.append(element("summary", it.number + (it.epoch ? " of epoch " + it.epoch : "") + " (" +
    humanTime(it.latency_ns) + ", " + humanTime(it.queueing_ns) + " of it in queues)"));
  const table = element("table");
  for (const node of it.tree) {
    const row = element("tr");
    const name = element("td", node.name, "name");
    name.style.paddingLeft = 1 + 1.5 * node.depth + "em";
    row.append(name, element("td", humanTime(node.duration_ns)),
      element("td", "at " + humanTime(node.start_ns - it.start_ns)), element("td", "thread " + node.thread));
    table.append(row);
  }
  tree.append(table);
  return tree;
}

function showAsync() {
  const all = report.runs.flatMap((run) => run.async);
  document.getElementById("async-part").hidden = !all.length;
  if (!all.length) return;
  fillTable(document.getElementById("async"), "operation", [["count", (of) => of.count], ["mean", time("mean_ns")],
    ["p50", time("p50_ns")], ["p99", time("p99_ns")], ["max", time("max_ns")], ["total", time("total_ns")],
    ["running", time("running_ns")]], (run) => run.async);
}
