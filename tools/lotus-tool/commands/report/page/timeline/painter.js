// Draws the lanes of a run. Slices that are narrower than a pixel share one column of pixels with their neighbors.
"use strict";

const kindNames = ["preprocessing", "wait", "step"];
const kindColours = ["batch", "wait", "step"];
const reasonNames = ["blocked", "waits for CPU", "off the CPU"];
const reasonColours = ["blocked", "no-cpu", "batch"];
const faint = 0.22;  // opacity of slices that are not highlighted

class Painter {
  /** @param {any} view the timeline */
  constructor(view, context) {
    this.view = view;
    this.c = context;
    this.drawn = 0;  // number of slices and columns drawn
    this.fills = new Map();
    this.widths = new Map();
  }

  /** Discards the colors. Must be called after a change of the color scheme. */
  forget() { this.fills.clear(); }

  /** Returns how a slice is filled ({style}), and the color of the text on it ({text}) and behind the text ({flat}). */
  fillOf(row, name) {
    const key = row.kind === "operations" ? name : row.kind === "batches" ? -1 - Math.floor(name / 1e9) : -10 - name;
    let fill = this.fills.get(key);
    if (fill) return fill;
    if (row.kind === "operations") {
      const shown = shownName(report.op_names[name]);
      const flat = operationColour(shown);
      fill = { flat, style: operationFill(this.c, shown), text: textOn(flat) };
    } else {
      const kind = row.kind === "batches" ? kindColours[-1 - key] : reasonColours[name];
      const flat = cssColour(kind);
      // Stripes distinguish waits from steps even without color.
      fill = { flat, text: textOn(flat), style: kind === "wait" ?
        this.c.createPattern(tileOf(flat, cssColour("wait-stripe"), rising), "repeat") : flat };
    }
    this.fills.set(key, fill);
    return fill;
  }

  widthOf(text) {
    if (!this.widths.has(text)) {
      if (this.widths.size > 5000) this.widths.clear();
      this.widths.set(text, this.c.measureText(text).width);
    }
    return this.widths.get(text);
  }

  paint(height) {
    const { c, view } = this;
    this.drawn = 0;
    c.fillStyle = cssColour("page");
    c.fillRect(0, 0, view.width, height);
    drawAxis(c, view, height);
    c.save();
    c.beginPath();
    c.rect(view.left, axisHeight, view.plot, height);
    c.clip();
    c.font = "11px system-ui, sans-serif";
    for (const lane of view.lanes) {
      for (const row of shownRows(lane)) {
        if (row.kind === "counter") this.counter(row);
        else {
          this.row(row);
          if (view.emphasis && row.kind === "operations") this.emphasised(row, view.emphasis);
        }
      }
      this.marks(lane);
    }
    for (const lane of view.lanes) this.drawn += view.path.draw(c, view, lane);
    this.arrows();
    c.restore();
    this.titles();
  }

  row(row) {
    const { c, view } = this;
    const perPixel = (view.to - view.from) / view.plot;
    const ground = view.emphasis && row.kind === "operations" ? faint : 1;
    const tall = heightOf(row) - 2;
    let i = row.firstEndingAfter(view.from);
    while (i < row.length && row.start[i] < view.to) {
      const left = view.x(row.start[i]);
      const right = view.x(row.end[i]);
      const fill = this.fillOf(row, row.name[i]);
      c.fillStyle = fill.style;
      ++this.drawn;
      if (right - left >= 1) {
        const from = Math.max(left, view.left);
        const width = Math.min(right, view.width) - from;
        const joined = row.joined.has(i);
        c.globalAlpha = ground * (joined ? Math.min(1, 0.25 + row.busy(i) / (row.end[i] - row.start[i])) : 1);
        c.fillRect(from, row.y, Math.max(width - (width > 3 ? 1 : 0.5), 0.5), tall);
        c.globalAlpha = 1;
        if (width > 14 && !joined && ground === 1 && row.kind !== "off CPU") this.label(row, i, fill, from, width);
        ++i;
      } else {
        // If one pixel contains many slices, they are drawn as one column. The more time they cover, the stronger is
        // its color.
        const column = Math.max(Math.floor(left), view.left);
        const next = Math.max(i + 1, row.firstEndingAfter(view.from + (column - view.left + 1) * perPixel));
        c.globalAlpha = ground * Math.min(1, 0.25 + (row.before[next] - row.before[i]) / perPixel);
        c.fillRect(column, row.y, 1, tall);
        c.globalAlpha = 1;
        i = next;
      }
    }
  }

  /** Draws highlighted slices after all others, even if they are very short. */
  emphasised(row, emphasis) {
    const { c, view } = this;
    const places = emphasis.placesIn(row);
    let n = emphasis.firstFrom(row, places, row.firstEndingAfter(view.from));
    let last = -1;
    for (; n < places.length && row.start[places[n]] < view.to; ++n) {
      const i = places[n];
      const from = Math.max(view.x(row.start[i]), view.left);
      const width = Math.min(view.x(row.end[i]), view.width) - from;
      if (width < 1 && Math.floor(from) === last) continue;
      last = Math.floor(from);
      const fill = this.fillOf(row, row.name[i]);
      c.fillStyle = fill.style;
      c.fillRect(from, row.y, Math.max(width - 0.5, 1), rowHeight - 2);
      ++this.drawn;
      if (width > 14) this.label(row, i, fill, from, width);
    }
  }

  /** Draws a name completely or not at all, because a cut name could be misread. */
  label(row, i, fill, x, width) {
    const text = row.kind === "batches" ? String(row.name[i] % 1e9) : this.view.nameOf(row, row.name[i]);
    if (this.widthOf(text) > width - 5) return;
    const { c } = this;
    if (fill.style !== fill.flat) {  // text on stripes is hard to read
      c.fillStyle = fill.flat;
      c.fillRect(x + 1, row.y, this.widthOf(text) + 4, rowHeight - 2);
    }
    c.fillStyle = fill.text;
    c.fillText(text, x + 3, row.y + 10);
  }

  /** Draws the values of a counter as a line with steps. If a pixel column has several values, draws their mean over
   * time, in a band from the lowest to the highest value. */
  counter(row) {
    const { c, view } = this;
    const height = heightOf(row) - 4;
    const yOf = (value) => row.y + 1 + height * (1 - (value - row.low) / (row.high - row.low || 1));
    c.strokeStyle = c.fillStyle = cssColour("accent");
    c.beginPath();
    for (let i = row.firstEndingAfter(view.from), first = true; i < row.length && row.start[i] < view.to;) {
      const column = Math.floor(Math.max(view.x(row.start[i]), view.left));
      let low = row.name[i];
      let high = low;
      let last = i;
      let weighted = row.name[i] * row.duration(i);
      let time = row.duration(i);
      while (last + 1 < row.length && view.x(row.start[last + 1]) < column + 1) {
        ++last;
        low = Math.min(low, row.name[last]);
        high = Math.max(high, row.name[last]);
        weighted += row.name[last] * row.duration(last);
        time += row.duration(last);
      }
      const x = Math.max(view.x(row.start[i]), view.left);
      const mean = time > 0 ? weighted / time : row.name[last];
      if (first) c.moveTo(x, yOf(mean)); else c.lineTo(x, yOf(mean));
      first = false;
      if (low !== high) {
        c.globalAlpha = 0.3;
        c.fillRect(column, yOf(high), 1, yOf(low) - yOf(high));
        c.globalAlpha = 1;
      }
      c.lineTo(Math.min(view.x(row.end[last]), view.width), yOf(last === i ? row.name[i] : mean));
      ++this.drawn;
      i = last + 1;
    }
    c.stroke();
  }

  marks(lane) {
    const { c, view } = this;
    c.fillStyle = cssColour("arrival");
    let last = -10;
    for (const mark of lane.marks) {
      const x = view.x(mark.at);
      if (x < view.left || x > view.width || x - last < 2) continue;
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

  /** Draws the arrows of the selected batch, or all arrows if only a few are visible. An arrow leads from the end of a
   * span of a batch or item to the next span of the same batch or item. */
  arrows() {
    const { c, view } = this;
    const middle = (number) => {
      const lane = view.laneOf(number);
      return lane && lane.rows[0].y + rowHeight / 2;
    };
    for (const [from, fromTrack, to, toTrack] of view.shownArrows()) {
      const [y, y2] = [middle(fromTrack), middle(toTrack)];
      if (y === undefined || y2 === undefined) continue;
      const [x, x2] = [view.x(from), view.x(to)];
      const angle = Math.atan2(y2 - y, x2 - x);
      c.strokeStyle = c.fillStyle = cssColour("accent");
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x2, y2);
      c.stroke();
      c.beginPath();
      c.moveTo(x2, y2);
      for (const turn of [2.7, -2.7]) c.lineTo(x2 + 6 * Math.cos(angle + turn), y2 + 6 * Math.sin(angle + turn));
      c.fill();
      ++this.drawn;
    }
  }

  titles() {
    const { c, view } = this;
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = cssColour("ink");
    for (const lane of view.lanes) {
      const mark = lane.rows.length > 1 ? (lane.collapsed ? "▸ " : "▾ ") : "";
      const most = view.hasGutter ? view.left - 8 : view.width - 8;
      let text = mark + lane.title;
      if (this.c.measureText(text).width > most) {
        while (text.length > 4 && this.c.measureText(text + "…").width > most) text = text.slice(0, -1);
        text += "…";
      }
      c.fillText(text, 4, lane.y + (view.hasGutter ? 10 : 12));
    }
  }
}
