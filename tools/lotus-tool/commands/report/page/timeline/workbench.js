// Combines the timeline with its controls: pointer, keys, search, selection, and the state in the address.
"use strict";

class Workbench {
  constructor() {
    const canvas = byId("timeline");
    this.canvas = canvas;
    this.timeline = new Timeline(canvas);
    this.tooltip = new Tooltip(this.timeline, byId("tooltip"), byId("pointed"));
    this.selection = new TimelineSelection(this.timeline, byId("selection"));
    this.search = new TimelineSearch(this.timeline, this.selection, byId("search"), byId("search-result"));
    this.onState = () => {};
    this.onPicture = () => {};
    this.selection.onChange = () => {
      this.search.lane = undefined;
      this.onState();
    };
    this.timeline.onChange = () => this.pictured();
    new TimelinePointer(this.timeline, canvas, byId("band"), {
      select: (x, y) => this.selection.at(x, y), selectRange: (from, to) => this.selection.range(from, to),
      zoomTo: (x, y) => this.zoomTo(x, y), showTip: (x, y) => this.tooltip.show(x, y), hideTip: () => this.tooltip.hide(),
    });
    this.keys = new PageKeys(this.timeline, canvas, byId("search"), {
      next: (by) => { if (this.search.isActive) this.result(by); else this.selection.next(by); },
      result: (by) => this.result(by),
      hasResults: () => this.search.isActive,
      step: (along, across) => this.step(along, across),
      clear: () => { this.search.text = ""; this.selection.clear(); },
      searchBox: () => { byId("search").focus(); byId("search").select(); },
      leaveSearch: () => { this.search.text = ""; canvas.focus(); },
    });
    for (const [id, act] of Object.entries({ "zoom-in": () => this.timeline.zoom(0.5, 0.5),
      "zoom-out": () => this.timeline.zoom(2, 0.5), "zoom-all": () => this.timeline.all(),
      "fold": () => this.fold() })) byId(id).addEventListener("click", act);
  }

  /** Selects a neighbor of the selected slice and makes it visible. Returns false if no slice is selected. */
  step(along, across) {
    const known = this.selection.step(along, across);
    if (known) this.showHere();
    return known;
  }

  /** Goes to the next or previous result of the search. The timeline gets the focus, because in the search box letters
   * would be text instead of keys. */
  result(by) {
    if (!this.search.next(by)) return;
    this.canvas.focus({ preventScroll: true });
    this.showHere();
  }

  /** Zooms to the slice at a position. If there is no slice, shows the whole run. */
  zoomTo(x, y) {
    if (this.timeline.hasGutter && x < this.timeline.left) return;
    const hit = this.timeline.hit(x, y);
    if (hit) this.timeline.lookAt(hit.row.start[hit.i], hit.row.end[hit.i]);
    else this.timeline.all();
  }

  showHere() {
    const here = byId("boxes").querySelector(".here");
    if (here) here.scrollIntoView({ block: "nearest" });
  }

  /** Collapses all threads to one row each, or opens all of them. */
  fold() {
    const some = this.timeline.lanes.some((lane) => !lane.collapsed && lane.rows.length > 1);
    for (const lane of this.timeline.lanes) lane.collapsed = some && lane.rows.length > 1;
    this.timeline.draw();
  }

  /** Shows a run in the timeline and updates its notes. @param {any} laidOut the result of layOut() */
  show(run, laidOut) {
    this.tooltip.hide();
    this.timeline.show(run, laidOut);
    byId("timeline-note").textContent = run.timeline.note + (this.timeline.path.leftOut ?
      " The shortest " + grouped(this.timeline.path.leftOut) + " parts of the critical path are not outlined." : "");
    byId("path-help").hidden = !this.timeline.path.isKnown;
    this.selection.showPanel();
    this.search.look();
  }

  /** Called each time the timeline was drawn. Shows the visible range, and boxes around the selection. */
  pictured() {
    const { timeline } = this;
    byId("timeline-range").textContent = humanTime(Math.round(timeline.to - timeline.from)) + " wide: " +
      humanTime(Math.round(timeline.from)) + " to " + humanTime(Math.round(timeline.to));
    const boxes = this.selection.boxes(this.canvas.clientHeight).filter(([from, to]) => to > from - 1 && from < timeline.width);
    const { lane } = this.search || {};
    if (lane && timeline.lanes.includes(lane)) boxes.push([2, timeline.width - 2, lane.y, lane.bottom - lane.y, true]);
    byId("boxes").replaceChildren(...boxes.slice(0, 50).map(([from, to, top, tall, here]) => {
      const box = element("div", undefined, here ? "box here" : "box");
      box.style.left = from - 2 + "px";
      box.style.width = Math.max(to - from, 1) + 4 + "px";
      box.style.top = top - 2 + "px";
      box.style.height = tall + 4 + "px";
      return box;
    }));
    byId("fold").hidden = !timeline.lanes.some((lane) => lane.rows.length > 1);
    byId("fold").textContent = timeline.lanes.some((lane) => !lane.collapsed && lane.rows.length > 1) ? "Collapse" : "Expand";
    this.tooltip.hide();
    this.onPicture();
    this.onState();
  }

  /** Returns the parts of the page's address, for page_state.js. */
  state() {
    const { timeline, selection } = this;
    const numbers = (text) => text.split("-").map(Number).filter((n) => Number.isFinite(n));
    return {
      at: { get: () => timeline.to - timeline.from < timeline.span ? Math.round(timeline.from) + "-" + Math.round(timeline.to) : undefined,
        set: (text) => { const [from, to] = numbers(text); if (to > from) timeline.look(from, to); } },
      q: { get: () => this.search.text, set: (text) => { this.search.text = text; } },
      batch: { get: () => { const s = timeline.selection; return s && s.kind === "batch" ?
        timeline.histories.index[s.place] + "." + timeline.histories.epoch[s.place] : undefined; },
      set: (text) => {
        const [index, epoch] = text.split(".").map(Number);
        const place = (timeline.histories.byIndex.get(index) || []).find((i) => timeline.histories.epoch[i] === (epoch || 0));
        if (place !== undefined) selection.batch(place, false);
      } },
      op: { get: () => { const s = timeline.selection; return s && s.kind === "operation" ?
        (s.rank >= 0 ? s.rank + "." : ".") + s.name : undefined; },
      set: (text, all) => {
        const dot = text.indexOf(".");
        const [from, to] = [timeline.from, timeline.to];
        const took = numbers(all.get("took") || "").map((ns) => Math.min(Math.max(Math.round(placeOfDuration(ns)), 0), allBins));
        selection.operation(text.slice(dot + 1), undefined, took[1] > took[0] ? took : undefined);
        if (dot > 0) { selection.slowest(Number(text.slice(0, dot)) || 0); timeline.look(from, to); }
      } },
      took: { get: () => { const s = timeline.selection; return s && s.took ? s.took.map((bin) => Math.round(binEdge(bin))).join("-") : undefined; },
        set: () => {} },  // is restored together with the operation
      range: { get: () => { const s = timeline.selection; return s && s.kind === "range" ?
        Math.round(s.from) + "-" + Math.round(s.to) : undefined; },
      set: (text) => { const [from, to] = numbers(text); if (to > from) selection.range(from, to); } },
      lanes: { get: () => turnedLanes(timeline.lanes), set: (text) => { turnLanes(timeline.lanes, text); timeline.draw(); } },
    };
  }
}
