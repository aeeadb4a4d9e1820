// Lays out the timeline of one run: lanes from top to bottom, each with one or several rows.
"use strict";

const rowHeight = 14;
const thinRow = 7;      // height of rows for time off the CPU, which would otherwise dominate the picture
const axisHeight = 24;
const mostOpenLanes = 12;  // if there are more, the lanes of threads are collapsed at first
const widthWithGutter = 760;

function counterLane(name, values, span) {
  const row = counterRow(values, span);
  return { title: name + " (" + row.low + " to " + row.high + ")", rows: [row], marks: [] };
}

/** Returns the stage in which a thread spends nearly all of its recorded time; "" if there is none.
 * @param {any[]} rows the thread's rows of operations */
function stageOf(rows, run) {
  if (!rows.length || !run.stages.length) return "";
  const stages = new Set(run.stages.map((stage) => stage.name));
  const times = new Map();
  let all = 0;
  for (let i = 0; i < rows[0].length; ++i) {
    const name = shownName(report.op_names[rows[0].name[i]]);
    times.set(name, (times.get(name) || 0) + rows[0].duration(i));
    all += rows[0].duration(i);
  }
  const found = [...times].find(([name, ns]) => stages.has(name) && ns >= 0.9 * all);
  return found ? found[0] : "";
}

/** Returns the lane of one thread; undefined if nothing of this thread is drawn. */
function threadLane(track, number, run) {
  const lane = { title: track.name, threads: [], rows: [], marks: [], undrawn: track.undrawn ? new UndrawnSums(track.undrawn) : undefined };
  if (track.batches) lane.rows.push(...batchRows(track.batches, lane.marks));
  const operations = track.slices ? operationRows(track.slices) : [];
  lane.rows.push(...operations);
  const stage = stageOf(operations, run);
  if (stage) lane.title = stage + ", " + lane.title;
  if (track.off_cpu && track.off_cpu.length) {
    const row = offCpuRow(track.off_cpu);
    // The row is hidden if the thread is a consumer that builds no batches, because its waits are already drawn as
    // waits for batches.
    const kinds = new Set((track.batches || []).map(([, , kind]) => kind));
    row.hidden = kinds.has(1) && !kinds.has(0);
    lane.rows.push(row);
  }
  if (!lane.rows.length) return undefined;
  const rows = lane.rows.filter((row) => row.length);
  lane.threads.push({ number, title: lane.title, from: Math.min(...rows.map((row) => row.start[0])) });
  lane.to = Math.max(...rows.map((row) => row.end[row.length - 1]));
  return lane;
}

/** Returns one row for rows of the same kind that follow each other in time. */
function joinRows(rows) {
  const all = new Row(rows.reduce((count, row) => count + row.length, 0));
  Object.assign(all, { kind: rows[0].kind, depth: rows[0].depth, hidden: rows.every((row) => row.hidden) });
  for (const row of rows) {
    row.joined.forEach((of, i) => all.joined.set(all.length + i, of));
    for (let i = 0; i < row.length; ++i) all.add(row.start[i], row.end[i], row.name[i]);
  }
  return all.close();
}

/** Returns one lane for threads that worked one after the other. */
function joinLanes(lanes) {
  if (lanes.length === 1) return lanes[0];
  const byKind = new Map();
  for (const lane of lanes) {
    const seen = new Map();
    for (const row of lane.rows) {
      const kind = row.kind + row.depth;
      seen.set(kind, (seen.get(kind) || 0) + 1);
      const key = kind + " " + seen.get(kind);
      byKind.set(key, [...(byKind.get(key) || []), row]);
    }
  }
  const undrawn = lanes.map((lane) => lane.undrawn).filter((sums) => sums);
  const order = ["batches", "operations", "off CPU"];
  return { title: lanes[0].title + " +" + (lanes.length - 1),
    threads: lanes.flatMap((lane) => lane.threads), marks: lanes.flatMap((lane) => lane.marks), to: lanes[lanes.length - 1].to,
    rows: [...byKind.values()].map(joinRows).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || a.depth - b.depth),
    undrawn: undrawn.length ? { between: (from, to, add) => undrawn.map((sums) => sums.between(from, to, add)).every((exact) => exact) } : undefined };
}

/** Draws threads of the same kind that worked one after the other, such as one for each batch, in the same lane.
 * @param {any[]} lanes the lanes of the threads, one for each */
function shareLanes(lanes) {
  const shared = [];
  for (const lane of [...lanes].sort((a, b) => a.threads[0].from - b.threads[0].from)) {
    const kind = lane.title.replace(/[0-9]+/g, "");
    const free = shared.find((of) => of.kind === kind && of.to <= lane.threads[0].from);
    if (free) free.lanes.push(lane); else shared.push({ kind, lanes: [lane], to: 0 });
    (free || shared[shared.length - 1]).to = lane.to;
  }
  shared.sort((a, b) => lanes.indexOf(a.lanes[0]) - lanes.indexOf(b.lanes[0]));
  return shared.map((of) => joinLanes(of.lanes));
}

function asyncLanes(run) {
  return (run.timeline.async || []).map((of) => {
    const rows = historyRows(of.name, of.histories);
    const shown = rows.slice(0, 2 * maxDepth);
    return { title: shownName(report.op_names[of.name]) + ", asynchronous" + (rows.length > shown.length ?
      " (" + shown.length + " of up to " + rows.length + " at once are drawn)" : ""), rows: shown, marks: [] };
  });
}

/** Lays out a run in steps, between which the page can react. Counters come first, because the lanes below them explain
 * their values. Yields after each step; returns {histories, path, lanes}. */
function* layOut(run) {
  const histories = new BatchHistories(run.batches);
  yield;
  const path = new CriticalPath(run.path);
  yield;
  const lanes = [];
  const span = run.timeline.span_ns;
  const ready = histories.complete ? histories.levels("ready", "consumed") : [];
  if (ready.length) lanes.push(counterLane("batches ready", ready, span));
  const busy = histories.complete ? histories.levels("started", "ready") : [];
  if (busy.length) lanes.push(counterLane("in preprocessing", busy, span));
  yield;
  for (const counter of run.timeline.counters || []) lanes.push(counterLane(counter.name, counter.values, span));
  const threads = [];
  for (let number = 0; number < run.timeline.tracks.length; ++number) {
    const lane = threadLane(run.timeline.tracks[number], number, run);
    if (lane) threads.push(lane);
    yield;
  }
  lanes.push(...(threads.length > mostOpenLanes ? shareLanes(threads) : threads), ...asyncLanes(run));
  const collapsed = lanes.length > mostOpenLanes;
  for (const lane of lanes) lane.collapsed = lane.beganCollapsed = collapsed && lane.rows.length > 1;
  return { histories, path, lanes };
}

/** Returns the numbers of the lanes that the user has opened or collapsed, such as "0,3-5". */
function turnedLanes(lanes) {
  const ranges = [];
  lanes.forEach((lane, i) => {
    if (lane.collapsed === lane.beganCollapsed) return;
    const last = ranges[ranges.length - 1];
    if (last && last[1] === i - 1) last[1] = i; else ranges.push([i, i]);
  });
  return ranges.map(([from, to]) => from === to ? String(from) : from + "-" + to).join(",");
}

function turnLanes(lanes, text) {
  const ranges = text.split(",").map((range) => range.split("-").map(Number));
  lanes.forEach((lane, i) => {
    const turned = ranges.some(([from, to]) => i === from || i >= from && i <= to);
    lane.collapsed = lane.rows.length > 1 && turned !== lane.beganCollapsed;
  });
}

function heightOf(row) { return row.kind === "counter" ? 2 * rowHeight : row.kind === "off CPU" ? thinRow : rowHeight; }

function shownRows(lane) { return lane.collapsed ? lane.rows.slice(0, 1) : lane.rows.filter((row) => !row.hidden); }

/** Sets `y`, the position of the upper edge, of every lane and row. Returns the total height. */
function placeLanes(lanes, hasGutter) {
  let y = axisHeight + 2;
  for (const lane of lanes) {
    lane.y = y;
    if (!hasGutter) y += 16;
    lane.rows.forEach((row) => { row.y = -1e6; });
    for (const row of shownRows(lane)) { row.y = y; y += heightOf(row); }
    lane.bottom = y;
    y += lane.collapsed ? 2 : 6;
  }
  return y;
}
