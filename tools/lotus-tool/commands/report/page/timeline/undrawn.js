// Stores sums over the operations of a thread that are not drawn because there are too many. There are sums for each
// cell of time, which is a batch or the time between two batches.
"use strict";

class UndrawnSums {
  /** @param packed in the format that undrawn_sums.hpp describes */
  constructor(packed) {
    this.row = new Row();  // a slice for each cell
    this.sums = [];        // for each cell: [name, count, ns, longest]
    const reader = new NumberReader(packed);
    for (let now = 0; !reader.done;) {
      const start = now + reader.signed();
      now = start + reader.unsigned();
      this.row.add(start, now, 0);
      const sums = [];
      for (let n = reader.unsigned(); n > 0; --n) sums.push([reader.unsigned(), reader.unsigned(), reader.unsigned(), reader.unsigned()]);
      this.sums.push(sums);
    }
  }

  /** Calls add(name, count, ns, longest) for each name of each cell in a range. If the range cuts a cell, its sums
   * count in proportion. Returns whether no cell was cut, so that the sums are exact. */
  between(from, to, add) {
    let exact = true;
    for (let i = this.row.firstEndingAfter(from); i < this.row.length && this.row.start[i] < to; ++i) {
      const share = Math.min((Math.min(this.row.end[i], to) - Math.max(this.row.start[i], from)) / Math.max(this.row.duration(i), 1), 1);
      if (share < 1) exact = false;
      for (const [name, count, ns, longest] of this.sums[i]) add(name, share * count, share * ns, longest);
    }
    return exact;
  }
}
