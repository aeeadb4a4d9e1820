// What the timeline draws: lanes of rows. Every row holds slices that do not overlap, in order of
// time, so a picture costs a search for every pixel column and not a look at every slice.
"use strict";

/** Bytes of LEB128 numbers, in base64. */
class NumberReader {
  constructor(base64) {
    const text = atob(base64);
    this.bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) this.bytes[i] = text.charCodeAt(i);
    this.at = 0;
  }
  get done() { return this.at >= this.bytes.length; }
  unsigned() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
  signed() {
    const value = this.unsigned();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

/** Slices that do not overlap, in order of time. */
class Row {
  constructor() {
    this.start = [];
    this.end = [];
    this.name = [];
    this.joined = new Map();  // by place: how many neighbours it is, and how much of it they take
  }
  add(start, end, name) {
    this.start.push(start);
    this.end.push(end);
    this.name.push(name);
  }
  addJoined(start, end, name, count, busy) {
    this.joined.set(this.start.length, { count, busy });
    this.add(start, end, name);
  }
  /** How much of a slice is filled, in ns. */
  busy(i) { const joined = this.joined.get(i); return joined ? joined.busy : this.end[i] - this.start[i]; }
  /** For each slice, how much time all slices before it take: then any stretch's load is known. */
  close() {
    this.before = new Float64Array(this.start.length + 1);
    this.start.forEach((start, i) => { this.before[i + 1] = this.before[i] + this.busy(i); });
  }
  /** The first slice that ends after `t`. */
  firstEndingAfter(t) {
    let low = 0;
    let high = this.end.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] > t) high = middle; else low = middle + 1;
    }
    return low;
  }
}

const maxDepth = 6;

/** Operations of one log, as rows by depth. */
function operationRows(packed) {
  const reader = new NumberReader(packed);
  const slices = [];
  let start = 0;
  let sorted = true;
  while (!reader.done) {
    const delta = reader.signed();
    if (delta < 0) sorted = false;
    start += delta;
    slices.push({ start, end: start + reader.unsigned(), name: reader.unsigned() });
  }
  if (!sorted) slices.sort((a, b) => a.start - b.start || b.end - a.end);
  const rows = [];
  const open = [];
  for (const slice of slices) {
    while (open.length && open[open.length - 1] <= slice.start) open.pop();
    const depth = open.length;
    open.push(slice.end);
    if (depth >= maxDepth) continue;
    if (!rows[depth]) rows[depth] = new Row();
    // A slice that reaches into its neighbour is cut, for rows must not overlap.
    const row = rows[depth];
    const last = row.end.length - 1;
    row.add(last >= 0 ? Math.max(slice.start, row.end[last]) : slice.start, slice.end, slice.name);
  }
  rows.forEach((row) => row.close());
  return rows;
}

/** A counter's values, each until the next one or the run's end; Row.name holds them. */
function counterRow(values, span) {
  const row = new Row();
  values.forEach(([at, value], i) => row.add(at, i + 1 < values.length ? values[i + 1][0] : span, value));
  row.counter = true;
  row.low = values.reduce((low, [, value]) => Math.min(low, value), 0);
  row.high = values.reduce((high, [, value]) => Math.max(high, value), 0);
  return row;
}

/** Stretches off the CPU; Row.name holds the reasons. */
function offCpuRow(stretches) {
  const row = new Row();
  for (const [start, duration, reason] of stretches) row.add(start, start + duration, reason);
  row.close();
  row.offCpu = true;
  return row;
}

/** Lives in as many rows as are open at once. */
function livesRows(name, lives) {
  const rows = [];
  for (const [start, duration] of lives) {
    let row = rows.find((r) => r.end[r.end.length - 1] <= start);
    if (!row) { row = new Row(); rows.push(row); }
    row.add(start, start + duration, name);
  }
  rows.forEach((row) => row.close());
  return rows;
}

/** Batch records of one log: a row; of joined ones, which may lie beside each other, one for each kind. */
function batchRows(batches, marks) {
  const apart = batches.some((b) => b.length > 4);
  const rows = [];
  for (const [start, duration, kind, index, count, busy] of batches) {
    if (kind === 3) { marks.push({ at: start, index }); continue; }
    const at = apart ? kind : 0;
    rows[at] = rows[at] || new Row();
    if (count) rows[at].addJoined(start, start + duration, kind * 1e9 + index, count, busy);
    else rows[at].add(start, start + duration, kind * 1e9 + index);
  }
  const found = rows.filter((row) => row);
  if (!found.length) found.push(new Row());
  found.forEach((row) => { row.close(); row.batches = true; });
  return found;
}

/** The picture of one run: lanes of rows, from top to bottom. */
function layOut(run) {
  const lanes = [];
  run.timeline.tracks.forEach((track, number) => {
    const lane = { title: track.name, number, rows: [], marks: [] };
    if (track.batches) {
      lane.rows.push(...batchRows(track.batches, lane.marks));
    }
    if (track.slices) operationRows(track.slices).forEach((row) => lane.rows.push(row));
    if (track.off_cpu && track.off_cpu.length) lane.rows.push(offCpuRow(track.off_cpu));
    if (lane.rows.length) lanes.push(lane);
  });
  for (const of of run.timeline.async || []) {
    const rows = livesRows(of.name, of.lives);
    const shown = rows.slice(0, 2 * maxDepth);
    lanes.push({ title: report.op_names[of.name] + ", asynchronous" + (rows.length > shown.length ?
      " (" + shown.length + " of up to " + rows.length + " at once are drawn)" : ""), rows: shown, marks: [] });
  }
  for (const counter of run.timeline.counters || []) {
    const row = counterRow(counter.values, run.timeline.span_ns);
    lanes.push({ title: counter.name + " (" + row.low + " to " + row.high + ")", rows: [row], marks: [] });
  }
  return lanes;
}
