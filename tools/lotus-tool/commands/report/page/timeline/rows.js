// Rows of slices, which the timeline draws. The slices of a row are in order of time and do not overlap, so drawing
// needs one search per pixel column instead of looking at every slice.
"use strict";

/** Reads LEB128 numbers from base64. */
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
  /** @param {number} [count] number of slices; if it is given, the row needs less memory */
  constructor(count) {
    this.length = 0;
    this.start = /** @type {any} */ (count === undefined ? [] : new Float64Array(count));
    this.end = /** @type {any} */ (count === undefined ? [] : new Float64Array(count));
    this.name = /** @type {any} */ (count === undefined ? [] : new Float64Array(count));
    this.joined = new Map();  // by index: how many neighbors were combined, and the sum of their durations
    this.kind = "operations";
    this.hidden = false;  // whether the row exists but is not drawn
    this.depth = 0;
  }
  add(start, end, name) {
    this.start[this.length] = start;
    this.end[this.length] = end;
    this.name[this.length++] = name;
  }
  addJoined(start, end, name, count, busy) {
    this.joined.set(this.length, { count, busy });
    this.add(start, end, name);
  }
  duration(i) { return this.end[i] - this.start[i]; }
  /** Returns the busy time of a slice in ns. It is less than the duration if the slice stands for several neighboring
   * ones that had gaps between them. */
  busy(i) { const joined = this.joined.get(i); return joined ? joined.busy : this.duration(i); }
  /** Computes, for each slice, the sum of the durations before it. The difference of two sums is the busy time between
   * two slices. */
  close() {
    this.before = new Float64Array(this.length + 1);
    for (let i = 0; i < this.length; ++i) this.before[i + 1] = this.before[i] + this.busy(i);
    return this;
  }
  /** Returns the index of the first slice that ends after `t`. */
  firstEndingAfter(t) {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] > t) high = middle; else low = middle + 1;
    }
    return low;
  }
  /** Returns the index of the slice that covers the time `t`; -1 if there is none. */
  at(t) {
    const i = this.firstEndingAfter(t);
    return i < this.length && this.start[i] <= t ? i : -1;
  }
  /** Returns how many ns between `from` and `to` are covered by slices. */
  busyBetween(from, to) {
    let sum = 0;
    for (let i = this.firstEndingAfter(from); i < this.length && this.start[i] < to; ++i) {
      sum += Math.min(this.end[i], to) - Math.max(this.start[i], from);
    }
    return sum;
  }
}

const maxDepth = 6;

/** Returns the indexes of `count` slices in order of their starts; a slice comes before those that it contains. */
function inOrder(start, duration, count) {
  const order = new Uint32Array(count);
  for (let i = 0; i < count; ++i) order[i] = i;
  return order.sort((a, b) => start[a] - start[b] || duration[b] - duration[a]);
}

/** Returns the operations of one log as rows, one row for each depth of nesting. */
function operationRows(packed) {
  const reader = new NumberReader(packed);
  const most = Math.ceil(reader.bytes.length / 3);  // each operation has three numbers
  const start = new Float64Array(most);
  const duration = new Float64Array(most);
  const name = new Uint32Array(most);
  let count = 0;
  let sorted = true;
  for (let now = 0; !reader.done; ++count) {
    const delta = reader.signed();
    if (delta < 0) sorted = false;
    start[count] = now += delta;
    duration[count] = reader.unsigned();
    name[count] = reader.unsigned();
  }
  const order = sorted ? undefined : inOrder(start, duration, count);
  const depths = new Uint8Array(count);
  const counts = new Array(maxDepth).fill(0);
  const open = [];
  for (let n = 0; n < count; ++n) {
    const i = order ? order[n] : n;
    while (open.length && open[open.length - 1] <= start[i]) open.pop();
    depths[n] = Math.min(open.length, maxDepth);
    if (open.length < maxDepth) ++counts[open.length];
    open.push(start[i] + duration[i]);
  }
  const rows = counts.filter((n) => n > 0).map((n) => new Row(n));
  for (let n = 0; n < count; ++n) {
    if (depths[n] === maxDepth) continue;
    const i = order ? order[n] : n;
    // The slices of a row must not overlap, so a slice that overlaps its neighbor is cut.
    const row = rows[depths[n]];
    const before = row.length ? row.end[row.length - 1] : start[i];
    row.add(Math.max(start[i], before), start[i] + duration[i], name[i]);
  }
  rows.forEach((row, depth) => { row.depth = depth; row.close(); });
  return rows;
}

/** Returns a counter's values as a row of slices. A value lasts until the next one or the run's end, and is stored in
 * Row.name. */
function counterRow(values, span) {
  const row = /** @type {any} */ (new Row(values.length));
  values.forEach(([at, value], i) => row.add(at, i + 1 < values.length ? values[i + 1][0] : span, value));
  row.kind = "counter";
  row.low = values.reduce((low, [, value]) => Math.min(low, value), 0);
  row.high = values.reduce((high, [, value]) => Math.max(high, value), 0);
  return row;
}

/** Returns intervals off the CPU as a row; Row.name stores their reasons. */
function offCpuRow(intervals) {
  const row = new Row(intervals.length);
  for (const [start, duration, reason] of intervals) row.add(start, start + duration, reason);
  row.kind = "off CPU";
  return row.close();
}

/** Returns the asynchronous operations of one name as rows of slices. Those that overlap in time are in different
 * rows. */
function historyRows(name, histories) {
  const rows = [];
  for (const [start, duration] of histories) {
    let row = rows.find((r) => r.end[r.length - 1] <= start);
    if (!row) { row = new Row(); rows.push(row); }
    row.add(start, start + duration, name);
  }
  return rows.map((row) => row.close());
}

/** Returns the batch records of one log as one row. If there are so many that neighboring records of one kind were
 * combined, each kind gets a row of its own, because combined records may overlap those of other kinds. */
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
  for (const row of found) { row.close(); row.kind = "batches"; }
  return found;
}
