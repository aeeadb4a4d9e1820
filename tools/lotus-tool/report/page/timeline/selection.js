// What is selected in the timeline: a batch, an operation, or a stretch of time; and what is told of it.
"use strict";

const slowestKept = 100;

class TimelineSelection {
  constructor(timeline, panel) {
    this.timeline = timeline;
    this.panel = panel;
    this.onChange = () => {};
  }

  /** What was clicked. */
  at(x, y) {
    const { timeline } = this;
    const lane = timeline.laneAt(y);
    if (lane && lane.rows.length > 1 && (timeline.hasGutter ? x < timeline.left : y < lane.y + 16)) {
      lane.collapsed = !lane.collapsed;
      timeline.draw();
      return;
    }
    const hit = timeline.hit(x, y);
    if (!hit || hit.row.kind === "counter") { this.clear(); return; }
    if (hit.row.kind === "operations") { this.operation(timeline.nameOf(hit.row, hit.row.name[hit.i]), hit); return; }
    const batch = timeline.batchOf(hit.lane, hit.row, hit.i);
    if (batch >= 0) this.batch(batch, false); else this.clear();
  }

  clear() { this.set(undefined); }

  batch(place, brings = true) {
    const { timeline } = this;
    this.set({ kind: "batch", place });
    const span = timeline.lives.span(place);
    if (brings && span) timeline.bringIntoView(...span);
  }

  range(from, to) { this.set({ kind: "range", from, to }); }

  /** @param {any} [hit] the one that was pointed at @param {number[]} [bins] first and last of the histogram */
  operation(name, hit, bins) {
    const { timeline } = this;
    const number = report.op_names.findIndex((of) => shownName(of) === name);
    if (number < 0) return;
    const [first, last] = bins || [0, 19];  // the outer ones have what is shorter and longer too
    const emphasis = new Emphasis(new Set([number]), first ? binEdge(first) : 0, last < 19 ? binEdge(last + 1) : Infinity);
    const slowest = emphasis.slowest(timeline.lanes, slowestKept);
    this.set({ kind: "operation", name, hit, bins, slowest, turn: -1 }, emphasis);
  }

  /** The n-th slowest of the selected operation. */
  slowest(n) {
    const { selection, emphasis } = this.timeline;
    if (!selection || selection.kind !== "operation" || !selection.slowest.length) return;
    const turn = (n + selection.slowest.length) % selection.slowest.length;
    const hit = selection.slowest[turn];
    if (hit.lane.collapsed && hit.lane.rows.indexOf(hit.row) > 0) hit.lane.collapsed = false;
    this.set({ ...selection, hit, turn }, emphasis);
    this.timeline.bringIntoView(hit.row.start[hit.i], hit.row.end[hit.i]);
  }

  /** The next of what is selected: slowest, or batch. */
  next(by) {
    const { selection, lives } = this.timeline;
    if (!selection) return;
    if (selection.kind === "operation") { this.slowest(selection.turn < 0 && by < 0 ? -1 : selection.turn + by); return; }
    if (selection.kind !== "batch") return;
    const order = lives.inOrder();
    const turn = order.indexOf(selection.place) + by;
    if (turn >= 0 && turn < order.length) this.batch(order[turn]);
  }

  set(selection, emphasis) {
    this.timeline.selection = selection;
    this.timeline.emphasis = emphasis;
    this.tell();
    this.timeline.draw();
    this.onChange();
  }

  tell() {
    const { timeline, panel } = this;
    const { selection } = timeline;
    panel.hidden = !selection;
    if (!selection) { panel.replaceChildren(); return; }
    const actions = {
      selectBatch: (place) => this.batch(place), selectName: (name) => this.operation(name),
      selectDurations: (name, bin, others) => this.operation(name, undefined,
        [Math.min(bin, ...(others || [])), Math.max(bin, ...(others || []))]),
      selectSlowest: (n) => this.slowest(n), next: () => this.next(1), clear: () => this.clear(),
    };
    panel.replaceChildren(...(selection.kind === "batch" ? batchPanel(timeline, selection.place, actions) :
      selection.kind === "range" ? rangePanel(timeline, selection, actions) : operationPanel(timeline, selection, actions)));
  }

  /** Boxes over the canvas for what is selected, as [from, to, top, height] in pixels. */
  boxes(height) {
    const { timeline } = this;
    const { selection } = timeline;
    if (!selection) return [];
    const box = (from, to, top, tall) => [Math.max(timeline.x(from), timeline.left), Math.min(timeline.x(to), timeline.width), top, tall];
    if (selection.kind === "range") return [box(selection.from, selection.to, axisHeight - 4, height - axisHeight + 4)];
    if (selection.kind === "operation") {
      if (!selection.hit) return [];
      const { row, i } = selection.hit;
      return [box(row.start[i], row.end[i], row.y, rowHeight - 2)];
    }
    const index = timeline.lives.index[selection.place];
    const found = [];
    for (const lane of timeline.lanes) {
      for (const row of lane.rows) {
        if (row.kind !== "batches") continue;
        for (let i = row.firstEndingAfter(timeline.from); i < row.length && row.start[i] < timeline.to; ++i) {
          if (row.name[i] % 1e9 !== index || timeline.batchOf(lane, row, i) !== selection.place) continue;
          found.push(box(row.start[i], row.end[i], row.y, rowHeight - 2));
        }
      }
    }
    return found;
  }
}
