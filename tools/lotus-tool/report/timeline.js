// The zoomable timeline: draws the lanes of a run, and tells what lies under the mouse.
"use strict";

const kindNames = ["SBatchPreprocessed_", "SBatchWait_", "step "];
const kindColours = ["batch", "wait", "step"];
const reasonNames = ["blocked", "no CPU", "off the CPU"];
const reasonColours = ["blocked", "no-cpu", "batch"];

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.rowHeight = 14;
    this.head = 18;
    this.drawn = 0;  // slices and columns of the last picture
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { this.drag = event.clientX; });
    window.addEventListener("pointerup", () => { this.drag = undefined; });
    canvas.addEventListener("pointermove", (event) => {
      if (this.drag === undefined) { this.tell(event.offsetX, event.offsetY); return; }
      this.move((this.drag - event.clientX) / canvas.clientWidth);
      this.drag = event.clientX;
    });
    canvas.addEventListener("keydown", (event) => {
      const act = { "+": () => this.zoom(0.8, 0.5), "-": () => this.zoom(1.25, 0.5),
        ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), 0: () => this.all() }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
  }

  show(run) {
    this.run = run;
    this.lanes = layOut(run);
    this.all();
  }

  all() { this.from = 0; this.to = Math.max(this.run.timeline.span_ns, 1); this.draw(); }

  zoom(factor, at) {
    const centre = this.from + (this.to - this.from) * at;
    const length = Math.min(Math.max((this.to - this.from) * factor, 100), this.run.timeline.span_ns || 1);
    this.from = centre - length * at;
    this.to = this.from + length;
    this.keepInside();
    this.draw();
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.from += by;
    this.to += by;
    this.keepInside();
    this.draw();
  }

  keepInside() {
    const length = this.to - this.from;
    this.from = Math.min(Math.max(this.from, 0), Math.max(0, this.run.timeline.span_ns - length));
    this.to = this.from + length;
  }

  x(t) { return (t - this.from) / (this.to - this.from) * this.width; }

  heightOf(row) { return row.counter ? 2 * this.rowHeight : this.rowHeight; }

  colourOf(row, name) {
    if (row.offCpu) return cssColour(reasonColours[name]);
    return row.batches ? cssColour(kindColours[Math.floor(name / 1e9)]) : colour(name);
  }

  draw() {
    this.width = this.canvas.clientWidth || 600;
    let y = 4;
    for (const lane of this.lanes) {
      lane.y = y;
      y += this.head;
      lane.rows.forEach((row) => { row.y = y; y += this.heightOf(row); });
      y += 8;
    }
    const scale = window.devicePixelRatio || 1;
    this.canvas.style.height = y + "px";
    this.canvas.width = this.width * scale;
    this.canvas.height = y * scale;
    const c = this.canvas.getContext("2d");
    c.scale(scale, scale);
    c.fillStyle = cssColour("page");
    c.fillRect(0, 0, this.width, y);
    this.drawn = 0;
    const colours = new Map();  // one look-up of a CSS colour for each colour, not each slice
    const known = (row, name) => {
      const key = row.batches ? "b" + Math.floor(name / 1e9) : row.offCpu ? "o" + name : name;
      if (!colours.has(key)) colours.set(key, this.colourOf(row, name));
      return colours.get(key);
    };
    for (const lane of this.lanes) {
      lane.rows.forEach((row) => row.counter ? this.drawCounter(c, row) : this.drawRow(c, row, known));
      this.drawMarks(c, lane);
    }
    this.drawArrows(c);
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = cssColour("ink");
    for (const lane of this.lanes) c.fillText(lane.title, 6, lane.y + 13);
    document.getElementById("timeline-range").textContent =
      humanTime(Math.round(this.from)) + " to " + humanTime(Math.round(this.to));
  }

  drawRow(c, row, known) {
    const perPixel = (this.to - this.from) / this.width;
    let i = row.firstEndingAfter(this.from);
    while (i < row.start.length && row.start[i] < this.to) {
      const left = this.x(row.start[i]);
      const right = this.x(row.end[i]);
      c.fillStyle = known(row, row.name[i]);
      ++this.drawn;
      if (right - left >= 1) {
        const from = Math.max(left, 0);
        const width = Math.min(right, this.width) - from;
        c.globalAlpha = row.joined.has(i) ? Math.min(1, 0.25 + row.busy(i) / (row.end[i] - row.start[i])) : 1;
        c.fillRect(from, row.y, Math.max(width - 0.5, 0.5), this.rowHeight - 2);
        c.globalAlpha = 1;
        if (width > 40) this.label(c, this.titleOf(row, i), from, row.y, width);
        ++i;
      } else {
        // Many slices in one pixel: one column, the fuller the stronger.
        const column = Math.floor(Math.max(left, 0));
        const until = this.from + (column + 1) * perPixel;
        const next = Math.max(i + 1, row.firstEndingAfter(until));
        const load = (row.before[next] - row.before[i]) / perPixel;
        c.globalAlpha = Math.min(1, 0.25 + load);
        c.fillRect(column, row.y, 1, this.rowHeight - 2);
        c.globalAlpha = 1;
        i = next;
      }
    }
  }

  /** A line in steps; what lies in one pixel column is one stroke from lowest to highest. */
  drawCounter(c, row) {
    const height = this.heightOf(row) - 4;
    const yOf = (value) => row.y + 1 + height * (1 - (value - row.low) / (row.high - row.low || 1));
    c.strokeStyle = cssColour("accent");
    c.beginPath();
    for (let i = row.firstEndingAfter(this.from), first = true; i < row.start.length && row.start[i] < this.to;) {
      const column = Math.floor(Math.max(this.x(row.start[i]), 0));
      let low = row.name[i];
      let high = low;
      let last = i;
      while (last + 1 < row.start.length && this.x(row.start[last + 1]) < column + 1) {
        ++last;
        low = Math.min(low, row.name[last]);
        high = Math.max(high, row.name[last]);
      }
      const x = Math.max(this.x(row.start[i]), 0);
      if (first) c.moveTo(x, yOf(row.name[i])); else c.lineTo(x, yOf(row.name[i]));
      first = false;
      if (low !== high) { c.lineTo(x, yOf(low)); c.lineTo(x, yOf(high)); c.lineTo(x, yOf(row.name[last])); }
      c.lineTo(Math.min(this.x(row.end[last]), this.width), yOf(row.name[last]));
      ++this.drawn;
      i = last + 1;
    }
    c.stroke();
  }

  label(c, text, x, y, width) {
    c.save();
    c.beginPath();
    c.rect(x, y, width - 3, this.rowHeight);
    c.clip();
    c.fillStyle = "#10151c";
    c.font = "11px system-ui, sans-serif";
    c.fillText(text, x + 3, y + 10);
    c.restore();
  }

  drawMarks(c, lane) {
    c.fillStyle = cssColour("arrival");
    let last = -10;
    for (const mark of lane.marks) {
      const x = this.x(mark.at);
      if (x < 0 || x > this.width || x - last < 2) continue;
      last = x;
      ++this.drawn;
      const y = lane.rows[0].y - 2;
      c.beginPath();
      c.moveTo(x, y + 5);
      c.lineTo(x - 4, y - 4);
      c.lineTo(x + 4, y - 4);
      c.fill();
    }
  }

  /** From the end of a batch's preprocessing to its consumption; not when there were too many. */
  drawArrows(c) {
    const visible = this.run.timeline.arrows.filter(
      ([from, , to]) => Math.max(from, to) >= this.from && Math.min(from, to) <= this.to);
    if (visible.length > 400) return;
    c.strokeStyle = cssColour("accent");
    c.globalAlpha = 0.55;
    c.beginPath();
    for (const [from, fromTrack, to, toTrack] of visible) {
      const source = this.lanes.find((lane) => lane.number === fromTrack);
      const target = this.lanes.find((lane) => lane.number === toTrack);
      if (!source || !target) continue;
      c.moveTo(this.x(from), source.rows[0].y + this.rowHeight / 2);
      c.lineTo(this.x(to), target.rows[0].y + this.rowHeight / 2);
      ++this.drawn;
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  nameOf(row, name) {
    if (row.counter) return String(name);
    if (row.offCpu) return reasonNames[name];
    return row.batches ? kindNames[Math.floor(name / 1e9)] + name % 1e9 : report.op_names[name];
  }

  /** What a slice is called; of joined ones how many they are. */
  titleOf(row, i) {
    const joined = row.joined.get(i);
    const name = this.nameOf(row, row.name[i]);
    if (!joined) return name;
    const share = 100 * joined.busy / Math.max(row.end[i] - row.start[i], 1);
    return joined.count + " from " + name + " on, " + Math.round(Math.min(share, 100)) + " % of the time";
  }

  tell(x, y) {
    const t = this.from + (this.to - this.from) * x / this.width;
    for (const lane of this.lanes) {
      for (const row of lane.rows) {
        if (y < row.y || y >= row.y + this.heightOf(row)) continue;
        const i = row.firstEndingAfter(t);
        if (i >= row.start.length || row.start[i] > t) continue;
        document.getElementById("timeline-tip").textContent = lane.title + ": " +
          this.titleOf(row, i) + ", " + humanTime(row.end[i] - row.start[i]) + ", from " +
          humanTime(row.start[i]);
        return;
      }
    }
  }
}
