// Stores what is selected in the timeline (a batch, an operation, or a range of time), and draws the panel about it.
"use strict";

const slowestKept = 100;

class TimelineSelection {
  constructor(timeline, panel) {
    this.timeline = timeline;
    this.panel = panel;
    this.onChange = () => {};
  }

  /** Selects what is drawn at a position that the user has clicked. A click on the name of a lane collapses or opens
   * the lane. */
  at(x, y) {
    const { timeline } = this;
    const lane = timeline.laneAt(y);
    if (lane && lane.rows.length > 1 && (timeline.hasGutter ? x < timeline.left : y < lane.y + 16)) {
      lane.collapsed = !lane.collapsed;
      timeline.draw();
      return;
    }
    const hit = timeline.hit(x, y);
    if (!hit || hit.row.kind === "counter") this.clear(); else this.slice(hit);
  }

  /** Selects the operation that a slice shows, or the batch that the slice belongs to. */
  slice(hit) {
    const { timeline } = this;
    if (hit.row.kind === "operations") { this.operation(timeline.nameOf(hit.row, hit.row.name[hit.i]), hit); return; }
    const batch = timeline.batchOf(hit.lane, hit.row, hit.i);
    if (batch >= 0) this.batch(batch, false, hit); else this.clear();
  }

  /** Selects a neighbor of the selected slice: one in the same row if `along` is not 0, otherwise one above or below.
   * Returns false if no slice is selected. */
  step(along, across) {
    const { timeline } = this;
    const hit = selectedSlice(timeline);
    if (!hit) return false;
    const next = along ? stepAlong(timeline, hit, along) : stepAcross(timeline, hit, across);
    if (next) {
      this.slice(next);
      timeline.bringIntoView(next.row.start[next.i], next.row.end[next.i]);
    }
    return true;
  }

  clear() { this.set(undefined); }

  /** Selects a batch and, if `brings` is true, moves the timeline so that the batch is visible. @param {number} place
   * index of the batch in the histories @param {any} [hit] the slice that the user pointed at */
  batch(place, brings = true, hit = undefined) {
    const { timeline } = this;
    this.set({ kind: "batch", place, hit });
    const span = timeline.histories.span(place);
    if (brings && span) timeline.bringIntoView(...span);
  }

  range(from, to) { this.set({ kind: "range", from, to }); }

  /** Selects an operation. @param {any} [hit] the slice that the user pointed at @param {number[]} [took] selected bins
   * of the histogram: the first, and the one after the last */
  operation(name, hit, took) {
    const { timeline } = this;
    const before = timeline.selection;
    const number = report.op_names.findIndex((of) => shownName(of) === name);
    if (number < 0) return;
    const [low, high] = took || [0, allBins];  // the first and the last bin also contain durations beyond them
    const emphasis = new Emphasis(new Set([number]), low > 0 ? binEdge(low) : 0, high < allBins ? binEdge(high) : Infinity);
    const slowest = emphasis.slowest(timeline.lanes, slowestKept);
    const axis = before && before.name === name ? before.axis : undefined;
    this.set({ kind: "operation", name, hit, took, axis, slowest, rank: -1 }, emphasis);
  }

  /** Selects an operation and, if it is drawn, its call that began at the time `at`. @param {number} [track] number of
   * the thread's lane, if only calls of one thread are wanted */
  call(name, at, track) {
    const { timeline } = this;
    this.operation(name);
    for (const lane of timeline.lanes) {
      if (track !== undefined && lane !== timeline.laneOf(track)) continue;
      for (const row of lane.rows) {
        if (row.kind !== "operations") continue;
        const i = row.firstEndingAfter(at);
        if (i >= row.length || row.start[i] !== at || timeline.nameOf(row, row.name[i]) !== name) continue;
        lane.collapsed = lane.collapsed && lane.rows.indexOf(row) === 0;
        this.operation(name, { lane, row, i });
        timeline.bringIntoView(row.start[i], row.end[i]);
        return;
      }
    }
  }

  /** Selects the n-th slowest call of the selected operation. */
  slowest(n) {
    const { selection, emphasis } = this.timeline;
    if (!selection || selection.kind !== "operation" || !selection.slowest.length) return;
    const rank = (n + selection.slowest.length) % selection.slowest.length;
    const hit = selection.slowest[rank];
    if (hit.lane.collapsed && hit.lane.rows.indexOf(hit.row) > 0) hit.lane.collapsed = false;
    this.set({ ...selection, hit, rank }, emphasis);
    this.timeline.bringIntoView(hit.row.start[hit.i], hit.row.end[hit.i]);
  }

  /** If an operation is selected, selects its call that is `by` ranks further in the list of the slowest calls. If a
   * batch is selected, selects the batch that was consumed `by` batches later. */
  next(by) {
    const { selection, histories } = this.timeline;
    if (!selection) return;
    if (selection.kind === "operation") { this.slowest(selection.rank < 0 && by < 0 ? -1 : selection.rank + by); return; }
    if (selection.kind !== "batch") return;
    const order = histories.inOrder();
    const rank = order.indexOf(selection.place) + by;
    if (rank >= 0 && rank < order.length) this.batch(order[rank]);
  }

  set(selection, emphasis) {
    this.timeline.selection = selection;
    this.timeline.emphasis = emphasis;
    this.showPanel();
    this.timeline.draw();
    this.onChange();
  }

  showPanel() {
    const { timeline, panel } = this;
    const { selection } = timeline;
    panel.hidden = !selection;
    if (!selection) { panel.replaceChildren(); return; }
    const actions = {
      selectBatch: (place) => this.batch(place), selectName: (name) => this.operation(name),
      selectDurations: (name, took) => this.operation(name, undefined, took),
      lookAtDurations: (axis) => this.set({ ...selection, axis }, timeline.emphasis),
      selectSlowest: (n) => this.slowest(n), next: () => this.next(1), clear: () => this.clear(),
    };
    const used = panel.contains(document.activeElement) && /** @type {any} */ (document.activeElement).dataset.key;
    const room = Math.min(Math.max(panel.clientWidth - 34, 240), 720);
    panel.replaceChildren(...(selection.kind === "batch" ? batchPanel(timeline, selection.place, actions) :
      selection.kind === "range" ? rangePanel(timeline, selection, actions) : operationPanel(timeline, selection, actions, room)));
    const again = used && panel.querySelector('[data-key="' + used + '"]');
    if (again) again.focus();
  }

  /** Returns boxes that mark the selection: [from, to, top, height, whether the user pointed at it] in pixels. */
  boxes(height) {
    const { timeline } = this;
    const { selection } = timeline;
    if (!selection) return [];
    const box = (from, to, top, tall) => [Math.max(timeline.x(from), timeline.left), Math.min(timeline.x(to), timeline.width), top, tall];
    if (selection.kind === "range") return [box(selection.from, selection.to, axisHeight - 4, height - axisHeight + 4)];
    if (selection.kind === "operation") {
      if (!selection.hit) return [];
      const { row, i } = selection.hit;
      return [[...box(row.start[i], row.end[i], row.y, rowHeight - 2), true]];
    }
    const index = timeline.histories.index[selection.place];
    const found = [];
    for (const lane of timeline.lanes) {
      for (const row of lane.rows) {
        if (row.kind !== "batches") continue;
        for (let i = row.firstEndingAfter(timeline.from); i < row.length && row.start[i] < timeline.to; ++i) {
          if (row.name[i] % 1e9 !== index || timeline.batchOf(lane, row, i) !== selection.place) continue;
          const here = selection.hit && selection.hit.row === row && selection.hit.i === i;
          found.push([...box(row.start[i], row.end[i], row.y, rowHeight - 2), here]);
        }
      }
    }
    return found;
  }
}
