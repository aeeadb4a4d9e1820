// Draws the critical path in the timeline as outlines.
"use strict";

class CriticalPath {
  /** @param {any} packed in the format that timeline_path.hpp describes */
  constructor(packed) {
    const reader = new NumberReader(packed.segments);
    this.leftOut = packed.left_out;
    this.tracks = new Map();  // a row of segments for each track, by the track's number
    for (let now = 0; !reader.done;) {
      const start = now + reader.signed();
      now = start + reader.unsigned();
      const track = reader.unsigned();
      if (!this.tracks.has(track)) this.tracks.set(track, new Row());
      this.tracks.get(track).add(start, now, 0);
    }
  }

  get isKnown() { return this.tracks.size > 0; }

  /** Outlines the parts of a lane that are on the critical path. Narrow parts only get a line above and below. Returns
   * the number of outlines. */
  draw(c, view, lane) {
    return (lane.threads || []).reduce((drawn, thread) => drawn + this.drawThread(c, view, lane, this.tracks.get(thread.number)), 0);
  }

  drawThread(c, view, lane, row) {
    if (!row) return 0;
    const top = shownRows(lane)[0].y - 1.5;
    const tall = lane.bottom - top - 0.5;
    let drawn = 0;
    c.strokeStyle = c.fillStyle = cssColour("ink");
    c.lineWidth = 2;
    for (let i = row.firstEndingAfter(view.from); i < row.length && row.start[i] < view.to; ++drawn) {
      const left = Math.max(view.x(row.start[i]), view.left - 3);
      let right = view.x(row.end[i]);
      // Segments with a distance of less than two pixels are drawn as one.
      for (++i; i < row.length && view.x(row.start[i]) - right < 2; ++i) right = view.x(row.end[i]);
      right = Math.min(right, view.width + 3);
      if (right - left > 5) {
        c.strokeRect(left + 0.5, top, right - left - 1, tall);
      } else {
        c.fillRect(left, top - 1, Math.max(right - left, 1), 2);
        c.fillRect(left, top + tall - 1, Math.max(right - left, 1), 2);
      }
    }
    c.lineWidth = 1;
    return drawn;
  }
}
