// Operations that are highlighted: those that were searched for, or those with the selected name.
"use strict";

class Emphasis {
  /** @param {Set<number>} names numbers of report.op_names @param [least] minimum in ns @param [most] limit */
  constructor(names, least, most) {
    this.names = names;
    this.least = least || 0;
    this.most = most || Infinity;
    this.places = new Map();  // by row
  }

  /** The indexes of the highlighted slices in a row, in order of time. */
  placesIn(row) {
    let found = this.places.get(row);
    if (found) return found;
    found = [];
    for (let i = 0; i < row.length; ++i) {
      if (!this.names.has(row.name[i])) continue;
      const duration = row.duration(i);
      if (duration >= this.least && duration < this.most) found.push(i);
    }
    found = Uint32Array.from(found);
    this.places.set(row, found);
    return found;
  }

  /** The position of the first of `places` that is at least `i`. */
  firstFrom(row, places, i) {
    let low = 0;
    let high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] >= i) high = middle; else low = middle + 1;
    }
    return low;
  }

  /** The `most` longest slices as {lane, row, i}, the longest first. */
  slowest(lanes, most) {
    const found = [];
    const longer = (a, b) => b.row.duration(b.i) - a.row.duration(a.i);
    let least = -1;  // only longer ones are added
    for (const lane of lanes) {
      for (const row of lane.rows) {
        if (row.kind !== "operations") continue;
        for (const i of this.placesIn(row)) {
          if (row.duration(i) <= least) continue;
          found.push({ lane, row, i });
          if (found.length < 4 * most) continue;
          found.sort(longer).length = most;
          least = found[most - 1].row.duration(found[most - 1].i);
        }
      }
    }
    return found.sort(longer).slice(0, most);
  }
}
