// The search box: operations, batches and threads by name.
"use strict";

/** What a text finds: {operations: [name], batches: [place], lanes: [lane]}. */
function searchFor(timeline, text) {
  const wanted = text.trim().toLowerCase();
  const found = { operations: [], batches: [], lanes: [] };
  if (!wanted) return found;
  const number = /^(?:batch\s*)?#?(\d+)$/.exec(wanted);
  if (number) found.batches = timeline.lives.byIndex.get(Number(number[1])) || [];
  found.operations = [...new Set(timeline.run.ops.map((op) => shownName(op.name)))]
    .filter((name) => name.toLowerCase().includes(wanted));
  found.lanes = timeline.lanes.filter((lane) => lane.title.toLowerCase().includes(wanted));
  return found;
}

class TimelineSearch {
  constructor(timeline, selection, box, result) {
    this.timeline = timeline;
    this.selection = selection;
    this.box = box;
    this.result = result;
    this.turn = -1;
    box.addEventListener("input", () => this.look());
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { this.next(event.shiftKey ? -1 : 1); event.preventDefault(); }
      // What was found is visible now, so from here on N goes to the next one as in the timeline.
      if (event.key === "Enter" && this.turn >= 0) timeline.canvas.focus();
      if (event.key === "Escape") { box.value = ""; this.look(); timeline.canvas.focus(); }
    });
  }

  get text() { return this.box.value; }
  set text(text) { this.box.value = text; this.look(); }

  look() {
    const { timeline } = this;
    this.found = searchFor(timeline, this.text);
    this.turn = -1;
    const { operations, batches, lanes } = this.found;
    if (!this.text.trim()) this.result.textContent = "";
    else {
      const told = [[operations.length, "operation"], [batches.length, "batch"], [lanes.length, "thread"]]
        .filter(([n]) => n > 0).map(([n, what]) => n + " " + what + (n === 1 ? "" : what === "batch" ? "es" : "s"));
      this.result.textContent = told.length ? told.join(", ") + "; Enter goes to them" : "nothing of that name";
    }
    const numbers = operations.map((name) => report.op_names.findIndex((of) => shownName(of) === name));
    timeline.emphasis = operations.length ? new Emphasis(new Set(numbers)) : undefined;
    timeline.draw();
  }

  /** Goes to the next of the results; false if nothing is searched for. */
  next(by) {
    if (!this.found || !this.text.trim()) return false;
    const { operations, batches, lanes } = this.found;
    const all = [...batches.map((place) => () => this.selection.batch(place)),
      ...operations.map((name) => () => { this.selection.operation(name); this.selection.slowest(0); }),
      ...lanes.map((lane) => () => { lane.collapsed = false; this.timeline.draw(); })];
    if (!all.length) return false;
    this.turn = (this.turn + by + all.length) % all.length;
    all[this.turn]();
    return true;
  }
}
