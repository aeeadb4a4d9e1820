// Finds the slices to highlight: the operations that the user searched for, or all operations with the selected name.
"use strict";

class Emphasis {
  /** Highlights operations by name and duration. @param {Set<number>} names indexes in report.op_names
   * @param [least] minimum duration in ns @param [most] limit in ns, exclusive */
  constructor(names, least, most) {
    this.names = names;
    this.least = least || 0;
    this.most = most || Infinity;
    this.places = new Map();  // highlighted slices by row
  }

  /** Returns the indexes of the highlighted slices in a row, in order of time. */
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

  /** Returns the position of the first element of `places` that is at least `i`. @param {number[]} places sorted
   * indexes of slices */
  firstFrom(row, places, i) {
    let low = 0;
    let high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] >= i) high = middle; else low = middle + 1;
    }
    return low;
  }

  /** Returns the `most` longest of the highlighted slices as {lane, row, i}; the longest comes first. */
  slowest(lanes, most) {
    const found = [];
    const longer = (a, b) => b.row.duration(b.i) - a.row.duration(a.i);
    let least = -1;  // only longer slices are added from now on
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
