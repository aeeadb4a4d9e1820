// Moves the selection in the timeline from the selected slice to another one: to a neighbor, to the slice that contains
// the selected one, or to a slice inside the selected one.
"use strict";

function rowsToStepIn(lane) {
  return shownRows(lane).filter((row) => row.length && (row.kind === "operations" || row.kind === "batches"));
}

/** Whether a slice can be selected: several batches that are drawn as one slice cannot. */
function canStepOn(timeline, { lane, row, i }) { return row.kind === "operations" || timeline.batchOf(lane, row, i) >= 0; }

/** Returns the selected slice as {lane, row, i}. For a batch that was not selected by a click on a slice, returns
 * its preprocessing. */
function selectedSlice(timeline) {
  const { selection, histories } = timeline;
  if (!selection) return undefined;
  if (selection.hit || selection.kind !== "batch") return selection.hit;
  for (const lane of timeline.lanes) {
    if (lane !== timeline.laneOf(histories.track[selection.place])) continue;
    for (const row of lane.rows.filter((of) => of.kind === "batches")) {
      const i = row.at(histories.moment(selection.place, "started"));
      if (i >= 0) return { lane, row, i };
    }
  }
  return undefined;
}

/** Returns the previous or the next slice in the same row. */
function stepAlong(timeline, { lane, row, i }, by) {
  for (let to = i + by; to >= 0 && to < row.length; to += by) {
    if (canStepOn(timeline, { lane, row, i: to })) return { lane, row, i: to };
  }
  return undefined;
}

/** Returns the first slice of `rows` that overlaps a range of time and can be selected. */
function firstWithin(timeline, lane, rows, from, to) {
  for (const row of rows) {
    for (let i = row.firstEndingAfter(from); i < row.length && (row.start[i] <= from || row.start[i] < to); ++i) {
      if (canStepOn(timeline, { lane, row, i })) return { lane, row, i };
    }
  }
  return undefined;
}

function nearestTo(timeline, lane, row, t) {
  const behind = row.firstEndingAfter(t);
  const before = behind - 1;
  const first = behind >= row.length || before >= 0 && t - row.end[before] < row.start[behind] - t ? before : behind;
  const hit = { lane, row, i: first };
  return canStepOn(timeline, hit) ? hit : stepAlong(timeline, hit, 1) || stepAlong(timeline, hit, -1);
}

/** Returns the slice above (by = -1) or below (by = 1) a slice. Above is the slice that contains the given one, or else
 * one in the lane above. Below is the first slice inside the given one, or else one in the lane below. */
function stepAcross(timeline, { lane, row, i }, by) {
  const [from, to] = [row.start[i], row.end[i]];
  const own = rowsToStepIn(lane);
  const at = own.indexOf(row);
  const found = firstWithin(timeline, lane, by > 0 ? own.slice(at + 1) : own.slice(0, Math.max(at, 0)).reverse(), from, to);
  if (found) return found;
  for (let n = timeline.lanes.indexOf(lane) + by; timeline.lanes[n]; n += by) {
    const other = timeline.lanes[n];
    const rows = rowsToStepIn(other);
    const hit = firstWithin(timeline, other, by > 0 ? rows : [...rows].reverse(), from, to) ||
      rows.length && nearestTo(timeline, other, rows[0], from);
    if (hit) return hit;
  }
  return undefined;
}
