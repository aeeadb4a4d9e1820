// The layout of one run's picture: lanes of rows from top to bottom.
"use strict";

const rowHeight = 14;
const axisHeight = 24;
const mostOpenLanes = 12;  // if there are more, threads begin collapsed
const widthWithGutter = 760;

function counterLane(name, values, span) {
  const row = counterRow(values, span);
  return { title: name + " (" + row.low + " to " + row.high + ")", rows: [row], marks: [] };
}

function threadLanes(run) {
  const lanes = [];
  run.timeline.tracks.forEach((track, number) => {
    const lane = { title: track.name, number, rows: [], marks: [] };
    if (track.batches) lane.rows.push(...batchRows(track.batches, lane.marks));
    if (track.slices) lane.rows.push(...operationRows(track.slices));
    if (track.off_cpu && track.off_cpu.length) lane.rows.push(offCpuRow(track.off_cpu));
    if (lane.rows.length) lanes.push(lane);
  });
  return lanes;
}

function asyncLanes(run) {
  return (run.timeline.async || []).map((of) => {
    const rows = livesRows(of.name, of.lives);
    const shown = rows.slice(0, 2 * maxDepth);
    return { title: shownName(report.op_names[of.name]) + ", asynchronous" + (rows.length > shown.length ?
      " (" + shown.length + " of up to " + rows.length + " at once are drawn)" : ""), rows: shown, marks: [] };
  });
}

/** Counters first, because the lanes below explain their values. */
function layOut(run, lives) {
  const lanes = [];
  const span = run.timeline.span_ns;
  const ready = lives.complete ? lives.levels("ready", "consumed") : [];
  if (ready.length) lanes.push(counterLane("batches ready", ready, span));
  const busy = lives.complete ? lives.levels("begun", "ready") : [];
  if (busy.length) lanes.push(counterLane("being made", busy, span));
  for (const counter of run.timeline.counters || []) lanes.push(counterLane(counter.name, counter.values, span));
  lanes.push(...threadLanes(run), ...asyncLanes(run));
  const collapsed = lanes.length > mostOpenLanes;
  for (const lane of lanes) lane.collapsed = lane.beganCollapsed = collapsed && lane.rows.length > 1;
  return lanes;
}

/** The numbers of the lanes that were opened or collapsed by the user: "0,3-5". */
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

function heightOf(row) { return row.kind === "counter" ? 2 * rowHeight : rowHeight; }

function shownRows(lane) { return lane.collapsed ? lane.rows.slice(0, 1) : lane.rows; }

/** Gives every lane and row its y; returns the total height. */
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
