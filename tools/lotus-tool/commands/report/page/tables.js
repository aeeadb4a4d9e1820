// The tables of operations and of stages.
"use strict";

/** Returns a small histogram for a cell of the table. */
function smallHistogram(histogram, fill) {
  const counts = halfDecades(histogram);
  const svg = svgElement("svg", { width: counts.length * 6, height: 22, viewBox: "0 0 " + counts.length * 6 + " 22", class: "small", role: "img", "aria-label":
    "most took about " + humanTime(Number(binEdge((counts.indexOf(Math.max(...counts)) + 0.5) * binsADecade / 2).toPrecision(1))) });
  const most = Math.max(...counts, 1);
  counts.forEach((count, i) => {
    if (!count) return;
    const height = Math.max(1, 22 * count / most);
    svg.append(svgElement("rect", { x: i * 6, y: 22 - height, width: 5, height, fill }));
  });
  return svg;
}

const { ops: opTitles, stages: stageTitles } = report.titles;

const cpuColumns = [timeColumn(opTitles.cpu_ns, "cpu_ns", "The part of the total in which the thread ran"),
  timeColumn(opTitles.run_queue_ns, "run_queue_ns", "The part of the total in which the thread was ready, but had no CPU"),
  timeColumn(opTitles.blocked_ns, "blocked_ns", "The part of the total in which the thread waited for a disk, a lock or a timer")];

/** The columns about the heap, with means per call. */
const memoryColumns = [bytesColumn(opTitles.allocated_bytes, "allocated_bytes", "How much a call allocated, on average"),
  column(opTitles.allocations, "How many allocations a call had, on average", (op) => op.allocations === undefined ? "" : Number(op.allocations.toPrecision(3)), (op) => op.allocations),
  bytesColumn(opTitles.retained_bytes, "retained_bytes", "How much of what a call allocated was not yet freed at its end, on average"),
  bytesColumn(opTitles.peak_bytes, "peak_bytes", "The largest growth of the thread's heap within one call")];

/** Returns the columns about CPU time if at least one row has a CPU time; otherwise no columns. */
function withCpu(rows) { return rows.some((row) => row.cpu_ns !== undefined) ? cpuColumns : []; }

const meanColumn = timeColumn(opTitles.mean_ns, "mean_ns", "The mean duration");
const medianColumn = timeColumn(opTitles.p50_ns, "p50_ns", "Half of them took this long or less (median)");
const p99Column = timeColumn(opTitles.p99_ns, "p99_ns", "99 of 100 took this long or less");
const maxColumn = timeColumn(opTitles.max_ns, "max_ns", "The longest duration");
const spreadColumns = [meanColumn, medianColumn, timeColumn(opTitles.p90_ns, "p90_ns", "9 of 10 took this long or less"), p99Column, maxColumn];
const callsColumn = countColumn(opTitles.count, "count", "How many calls there were");
const totalColumn = timeColumn(opTitles.total_ns, "total_ns", "The sum of the durations");
const selfColumn = timeColumn(opTitles.self_ns, "self_ns", "The total without the operations inside this one");
const belowColumns = [shareColumn("< 10 ms", "below_10ms", "The share of the calls that took less than 10 ms"),
  shareColumn("< 100 µs", "below_100us", "The share of the calls that took less than 100 µs: a profiler that samples misses many of them")];

const operationHead = ["operation", "The name that the program gave it, without the S of the logs"];

function histogramColumn(fillOf) { return column("distribution", "How many calls took how long, from 100 ns to 1000 s", (op) => smallHistogram(op.histogram, fillOf(op)), undefined); }

/** Returns for how many ns an operation, or the stage of the same name, is on the critical path; undefined if the run
 * has no critical path. */
function pathOf(op, run) {
  if (!run.verdict || !run.verdict.run_ns) return undefined;
  const name = shownName(op.name);
  return run.verdict.critical_path.reduce((sum, share) => sum + (share.name === name ? share.ns : 0), 0);
}

/** Returns the factor by which the run gets faster if the operation gets 1.25 times faster. Returns undefined if the
 * report has no prediction, as for operations with less than 1 % of the critical path. */
function gainOf(op, run) { return ownValue(run.path_gains, shownName(op.name)); }

/** Returns what an operation was blocked on, the most frequent first: text, ns, share of its samples, samples, stack. */
function waitsOf(name, run) { return ownValue(run.blocked_on, name) || []; }

/** @param {(name: string, run: any) => void} select */
function blockedOnColumns(all, runOf, select) {
  const first = (op) => waitsOf(shownName(op.name), runOf.get(op))[0];
  if (!all.some((op) => first(op))) return [];
  return [textColumn("blocked on", "What it mostly waits for while it is blocked, and for which share of that time; press it to see the calls", (op) => {
    const most = first(op);
    return most ? linkTo(most.text + " (" + percent(most.share) + ")", () => select(shownName(op.name), runOf.get(op))) : "";
  }, (op) => first(op) && first(op).ns)];
}

function operationColumns(all, select) {
  const runOf = new Map(report.runs.flatMap((run) => run.ops.map((op) => [op, run])));
  const share = (op) => {
    const ns = pathOf(op, runOf.get(op));
    return ns === undefined ? undefined : ns / runOf.get(op).verdict.run_ns;
  };
  const gain = (op) => gainOf(op, runOf.get(op));
  const path = !all.some((op) => share(op) > 0) ? [] : [
    column("of the critical path", "Its share of the critical path: the chain of work that determined how long the run took", (op) => share(op) === undefined ? "–" : percent(share(op)), share)];
  const gains = !all.some((op) => gain(op)) ? [] : [
    column("gain if 1.25× faster", "How many times as fast the whole run would be if this operation were 1.25 times as fast", (op) => gain(op) === undefined ? "–" : gain(op).toFixed(2) + "×", gain)];
  return [callsColumn, ...path, ...gains, histogramColumn((op) => operationColour(shownName(op.name))),
    totalColumn, selfColumn, ...withCpu(all), ...blockedOnColumns(all, runOf, select), ...spreadColumns, ...belowColumns,
    ...(all.some((op) => op.allocated_bytes !== undefined) ? memoryColumns : [])];
}

/** Returns a run's operations, sorted by time on the critical path, then by self time, the largest first. */
function worstFirst(run) {
  return [...run.ops].sort((a, b) => (pathOf(b, run) || 0) - (pathOf(a, run) || 0) || b.self_ns - a.self_ns);
}

/** Draws the table of operations. @param {(name: string, run: any) => void} select shows an operation in the timeline */
function showOperations(select) {
  const all = report.runs.flatMap((run) => run.ops);
  byId("memory-note").hidden = !all.some((op) => op.allocated_bytes !== undefined);
  const notes = [...new Set(report.runs.map((run) => run.ops_note))].join(" ").trim();
  byId("ops-note").hidden = !notes;
  byId("ops-note").textContent = notes;
  byId("cpu-note").hidden = !all.some((op) => op.cpu_ns !== undefined);
  showLeaks();
  const columns = withMainColumns(operationColumns(all, select), ["of the critical path", "total"]);
  return new SortedTable(byId("ops"), operationHead, columns, (op, run) => {
    const name = shownName(op.name);
    const button = linkTo(name, () => select(name, run));
    const box = element("i");
    box.style.background = operationBackground(name);
    button.prepend(box);
    button.classList.add("swatch");
    return button;
  }, worstFirst);
}

function showAggregated() {
  const any = report.runs.some((run) => run.aggregated.length);
  byId("aggregated-part").hidden = !any;
  if (!any) return;
  new SortedTable(byId("aggregated"), operationHead, [callsColumn, totalColumn, selfColumn, ...spreadColumns, ...belowColumns,
    histogramColumn((op) => operationColour(shownName(op.name)))], (op) => shownName(op.name), (run) => run.aggregated);
}

/** Returns a box of the picture of a pipeline: a name, facts, and a bar for the share of time in which it was busy. */
function pipelineBox(name, facts, busy, isLimit) {
  const box = element("li", undefined, isLimit ? "box limit" : "box");
  const bar = element("i");
  bar.style.width = 100 * Math.min(busy, 1) + "%";
  box.append(element("b", name + (isLimit ? " (the limit)" : "")), bar, ...facts.map((fact) => element("span", fact)));
  return box;
}

/** Returns what lies between two boxes: for which share of the time the queue was full or empty.
 * @param {number} full share of time in which the side before it found no room @param {number} empty the same of the side
 * behind it and input */
function pipelineQueue(full, empty) {
  const said = full >= 0.05 && full >= empty ? "full " + percent(full) : empty >= 0.05 ? "empty " + percent(empty) : "flows";
  return element("li", "→ " + said, "queue");
}

/** Draws the stages and the consumer as boxes, with the queues between them. */
function pipelinePicture(run) {
  const list = element("ol", undefined, "pipeline");
  list.setAttribute("aria-label", "The pipeline of " + run.name + ": stages, the queues between them, and the consumer");
  const v = run.verdict || {};
  run.stages.forEach((stage, i) => {
    if (i) list.append(pipelineQueue(run.stages[i - 1].blocked, stage.starved));
    list.append(pipelineBox(stage.name, [stage.concurrency + (stage.concurrency === 1 ? " thread" : " threads") + (stage.shared ? ", shared" : ""),
      "busy " + percent(stage.busy), stage.capacity_per_s === null ? "" : "up to " + threeDigits(stage.capacity_per_s) + "/s"], stage.busy, stage.name === v.stage));
  });
  if (v.consumer_capacity) {
    list.append(pipelineQueue(run.stages[run.stages.length - 1].blocked, v.wait_share), pipelineBox("consumer", ["busy " + percent(1 - v.wait_share),
      "up to " + threeDigits(v.consumer_capacity) + "/s"], 1 - v.wait_share, v.verdict === "consumer-bound"));
  }
  return list;
}

function showStages() {
  const all = report.runs.flatMap((run) => run.stages);
  byId("stages-part").hidden = !all.length;
  if (!all.length) return;
  const rate = (stage) => stage.capacity_per_s === null ? "–" : Number(stage.capacity_per_s.toPrecision(3));
  new SortedTable(byId("stages"), ["stage", "A step of the pipeline, with threads of its own or shared ones"],
    [countColumn(opTitles.count, "count", "How many batches or items it worked on"), meanColumn, medianColumn, p99Column, maxColumn, totalColumn,
    ...withCpu(all),
    column("at once", "How many threads work in it at once; shared: also in other stages", (stage) => stage.concurrency + (stage.shared ? " shared" : ""), (stage) => stage.concurrency),
    column("capacity, batches/s", "The throughput of the stage if it never had to wait for input or for room in its output, while CPUs, locks and disks stay as busy as in this run", rate, (stage) => stage.capacity_per_s),
    shareColumn(stageTitles.busy, "busy", "The share of its threads' time in which they worked on a batch or item: on a CPU, waiting for one, or blocked"),
    shareColumn(stageTitles.starved, "starved", "The share of its threads' time in which there was nothing to work on"),
    shareColumn(stageTitles.blocked, "blocked", "The share of its threads' time in which there was no room for the finished result")],
  (stage) => stage.name, (run) => run.stages);
  byId("pipelines").replaceChildren(...report.runs.filter((run) => run.stages.length).flatMap((run) =>
    [...(report.runs.length > 1 ? [element("h3", run.name)] : []), pipelinePicture(run)]));
  const list = byId("through-stages");
  for (const run of report.runs) {
    for (const of of run.through_stages) {
      const entry = element("li", (report.runs.length > 1 ? run.name + ": " : "") + of.count + " " + of.name +
        (of.from_first_item ? " from the start of the first item of each: p50 " : " from first stage to last: p50 ") + humanTime(of.p50_ns) + ", p99 " + humanTime(of.p99_ns) + "; the slowest:");
      of.slowest.forEach((it, i) => entry.append(treeOf(it, of.numbers[i])));
      list.append(entry);
    }
  }
}

/** Draws an item, which the user can unfold to see its stages. */
function treeOf(it, number) {
  const tree = element("details");
  tree.append(element("summary", number + (it.epoch ? " of epoch " + it.epoch : "") + " (" +
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
  byId("async-part").hidden = !all.length;
  if (!all.length) return;
  new SortedTable(byId("async"), operationHead, [callsColumn, meanColumn, medianColumn, p99Column, maxColumn, totalColumn,
    timeColumn("running", "running_ns", "The part of the total in which it ran on a thread")], (of) => shownName(of.name), (run) => run.async);
}
