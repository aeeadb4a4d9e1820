// The zoomable timeline of a run: the visible range, and the position of everything in it.
"use strict";

const mostArrows = 60;  // if there were more arrows, they would hide what they connect

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.painter = new Painter(this, canvas.getContext("2d"));
    this.onChange = () => {};  // called each time the timeline was drawn
    this.lanes = [];
    this.leastSpan = 0;  // that of another run on the same scale
    this.from = 0;
    this.to = 1;
  }

  /** Returns how many shapes the last drawing consisted of: slices, and columns of pixels with several short slices. */
  get drawn() { return this.painter.drawn; }
  get span() { return Math.max(this.run.timeline.span_ns, this.leastSpan, 1); }

  /** Shows a run. @param {any} laidOut the result of layOut() */
  show(run, laidOut) {
    this.run = run;
    this.histories = laidOut.histories;
    this.path = laidOut.path;
    this.lanes = laidOut.lanes;
    this.emphasis = undefined;
    this.selection = undefined;
    this.range = undefined;
    this.all();
  }

  all() { this.look(0, this.span); }

  look(from, to) {
    const length = Math.min(Math.max(to - from, 100), this.span);
    this.from = Math.min(Math.max(from, 0), this.span - length);
    this.to = this.from + length;
    this.draw();
  }

  /** Zooms around a position in the picture. @param at the position (0 to 1), at which the time does not change */
  zoom(factor, at) {
    const centre = this.from + (this.to - this.from) * at;
    const length = Math.min(Math.max((this.to - this.from) * factor, 100), this.span);
    this.look(centre - length * at, centre + length * (1 - at));
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  /** Zooms so that a range is visible with some margin. */
  lookAt(from, to) {
    const around = Math.max((to - from) * 0.5, 50);
    this.look(from - around, to + around);
  }

  /** Makes a range visible: moves if necessary, and zooms if the range would be too small to see. */
  bringIntoView(from, to) {
    const seen = this.to - this.from;
    if ((to - from) / seen < 3 / this.plot || to - from > seen) { this.lookAt(from - 5 * (to - from), to + 5 * (to - from)); return; }
    if (from >= this.from && to <= this.to) { this.draw(); return; }
    const middle = (from + to) / 2;
    this.look(middle - seen / 2, middle + seen / 2);
  }

  x(t) { return this.left + (t - this.from) / (this.to - this.from) * this.plot; }
  time(x) { return this.from + (this.to - this.from) * (x - this.left) / this.plot; }
  shareAt(x) { return Math.min(Math.max((x - this.left) / this.plot, 0), 1); }

  draw() {
    this.width = this.canvas.clientWidth || 600;
    this.hasGutter = this.width >= widthWithGutter;
    this.left = this.hasGutter ? (this.width > 1000 ? 170 : 130) : 0;
    this.plot = this.width - this.left;
    const height = placeLanes(this.lanes, this.hasGutter);
    const scale = Math.min(window.devicePixelRatio || 1, 16000 / height);  // canvases have a maximum size
    const pixels = [Math.round(this.width * scale), Math.round(height * scale)];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
      this.canvas.style.height = height + "px";
    }
    this.painter.c.setTransform(scale, 0, 0, scale, 0, 0);
    this.painter.paint(height);
    this.onChange();
  }

  shownArrows() {
    const all = this.run.timeline.arrows;
    if (this.selection && this.selection.kind === "batch") {
      const ready = this.histories.moment(this.selection.place, "ready");
      const own = all.filter(([from]) => from === ready);
      if (own.length) return own;
    }
    const seen = all.filter(([from, , to]) => Math.max(from, to) >= this.from && Math.min(from, to) <= this.to);
    return seen.length > mostArrows ? [] : seen;
  }

  nameOf(row, name) {
    if (row.kind === "counter") return String(name);
    if (row.kind === "off CPU") return reasonNames[name];
    if (row.kind === "batches") return kindNames[Math.floor(name / 1e9)] + " of batch " + name % 1e9;
    return shownName(report.op_names[name]);
  }

  /** Returns the name of a slice. If it stands for several neighboring slices, also returns their number. */
  titleOf(row, i) {
    const joined = row.joined.get(i);
    const name = this.nameOf(row, row.name[i]);
    if (!joined) return name;
    const share = 100 * joined.busy / Math.max(row.duration(i), 1);
    return joined.count + " from " + name + " on, " + Math.round(Math.min(share, 100)) + " % of the time";
  }

  /** Returns the lane of a thread. @param {number} track number of the thread */
  laneOf(track) { return this.lanes.find((lane) => lane.threads && lane.threads.some((thread) => thread.number === track)); }

  /** Returns the name of a thread; undefined if it is not drawn. */
  threadOf(track) {
    const lane = this.laneOf(track);
    return lane && lane.threads.find((thread) => thread.number === track).title;
  }

  /** Returns the name of the thread that a lane shows at a time. */
  threadAt(lane, t) { return [...(lane.threads || [])].reverse().find((thread) => thread.from <= t) || lane; }

  laneAt(y) { return this.lanes.find((lane) => y >= lane.y && y < lane.bottom); }

  /** Returns the slice at a position, or within two pixels of it: {lane, row, i}. */
  hit(x, y) {
    if (x < this.left) return undefined;
    const lane = this.laneAt(y);
    if (!lane) return undefined;
    const row = shownRows(lane).find((of) => y >= of.y && y < of.y + heightOf(of));
    if (!row) return undefined;
    for (const away of [0, -2, 2]) {
      const i = row.at(this.time(x + away));
      if (i >= 0) return { lane, row, i };
    }
    return undefined;
  }

  /** Returns the batch that a slice shows, or that the slice's thread worked on when the slice began, as an index in
   * `histories`; -1 if it is unknown. */
  batchOf(lane, row, i) {
    if (row.kind === "batches") return row.joined.has(i) ? -1 : this.histories.find(row.name[i] % 1e9, row.start[i]);
    for (const of of lane.rows) {
      if (of.kind !== "batches") continue;
      const at = of.at(row.start[i]);
      if (at >= 0 && !of.joined.has(at)) return this.histories.find(of.name[at] % 1e9, of.start[at]);
    }
    const work = this.workAt(lane, row.start[i]);
    return work ? work.place : -1;
  }

  /** Returns what a thread of a stage worked on at a time: {place: index of the batch, item: its number or undefined}. */
  workAt(lane, t) { return this.histories.workOn(this.threadAt(lane, t).number, t); }

  /** Returns the batch and the item that a slice belongs to, such as "3, item 12"; "" if they are unknown. */
  batchText(lane, row, i) {
    const batch = this.batchOf(lane, row, i);
    if (batch < 0) return "";
    const work = row.kind === "batches" ? undefined : this.workAt(lane, row.start[i]);
    return this.histories.nameOf(batch) + (work && work.item !== undefined ? ", item " + work.item : "");
  }

  /** Returns the CPU time of a slice; undefined if it is unknown. */
  cpuOf(lane, row, i) {
    const off = lane.rows.find((of) => of.kind === "off CPU");
    if (!off || row.kind !== "operations") return undefined;
    return row.duration(i) - off.busyBetween(row.start[i], row.end[i]);
  }
}
