// The search box, which finds operations, batches and threads by name.
"use strict";

/** Returns what matches the searched text: {operations: [name], batches: [place], lanes: [{lane, title}]}. */
function searchFor(timeline, text) {
  const wanted = text.trim().toLowerCase();
  const found = { operations: [], batches: [], lanes: [] };
  if (!wanted) return found;
  const number = /^(?:batch\s*)?#?(\d+)$/.exec(wanted);
  if (number) found.batches = timeline.histories.byIndex.get(Number(number[1])) || [];
  found.operations = [...new Set(timeline.run.ops.map((op) => shownName(op.name)))]
    .filter((name) => name.toLowerCase().includes(wanted));
  found.lanes = timeline.lanes.flatMap((lane) => [lane, ...(lane.threads || [])].filter((of) => of.title.toLowerCase().includes(wanted))
    .slice(0, 1).map(({ title }) => ({ lane, title })));
  return found;
}

class TimelineSearch {
  constructor(timeline, selection, box, result) {
    this.timeline = timeline;
    this.selection = selection;
    this.box = box;
    this.result = result;
    this.place = -1;
    this.own = undefined;  // the selection that the search has set
    this.lane = undefined;  // the thread that the search has gone to
    box.addEventListener("input", () => this.look());
  }

  get text() { return this.box.value; }
  set text(text) { this.box.value = text; this.look(); }

  look() {
    const { timeline } = this;
    this.found = searchFor(timeline, this.text);
    this.place = -1;
    this.lane = this.own = undefined;
    const { operations, batches, lanes } = this.found;
    if (!this.text.trim()) this.result.textContent = "";
    else {
      const counts = [[operations.length, "operation"], [batches.length, "batch"], [lanes.length, "thread"]]
        .filter(([n]) => n > 0).map(([n, what]) => n + " " + what + (n === 1 ? "" : what === "batch" ? "es" : "s"));
      this.result.textContent = counts.length ? counts.join(", ") + "; Enter goes to " + (counts.length > 1 || this.results.length > 1 ? "them" : "it") : "no operation, batch or thread has this name";
    }
    const numbers = operations.map((name) => report.op_names.findIndex((of) => shownName(of) === name));
    timeline.emphasis = operations.length ? new Emphasis(new Set(numbers)) : undefined;
    timeline.draw();
  }

  /** Returns the results as [description, function that shows it]. The Enter key goes from one result to the next. */
  get results() {
    if (!this.found || !this.text.trim()) return [];
    const { operations, batches, lanes } = this.found;
    return [...batches.map((place) => ["batch " + this.timeline.histories.nameOf(place), () => this.selection.batch(place)]),
      ...operations.map((name) => [name, () => { this.selection.operation(name); this.selection.slowest(0); }]),
      ...lanes.map(({ lane, title }) => [title, () => {
        lane.collapsed = false;
        this.selection.clear();
        this.lane = lane;
        this.timeline.draw();
      }])];
  }

  /** Whether the Enter key goes to the next result: there are results, and the timeline's selection is empty or was made
   * by the search. */
  get isActive() {
    return this.results.length > 0 && (!this.timeline.selection || this.timeline.selection === this.own);
  }

  /** Goes to the next result or, if the only result is an operation, to its next slowest call. Returns false if nothing
   * was found. */
  next(by) {
    const all = this.results;
    if (!all.length) return false;
    const { selection } = this.timeline;
    const single = all.length === 1 && this.place >= 0 && selection && selection === this.own && selection.kind === "operation";
    this.lane = undefined;
    if (single) {
      this.selection.next(by);
    } else {
      this.place = this.place < 0 ? (by > 0 ? 0 : all.length - 1) : (this.place + by + all.length) % all.length;
      all[this.place][1]();
    }
    this.own = this.timeline.selection;
    this.result.textContent = all.length > 1 ? "result " + (this.place + 1) + " of " + all.length + ": " + all[this.place][0] :
      all[0][0] + (single || selection && this.own && this.own.kind === "operation" ? "; Enter goes to the next slowest call" : "");
    return true;
  }
}
