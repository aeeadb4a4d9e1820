// Draws the table of the batches that the consumer waited for longest. Also scrolls to the place on the page that a link
// on the first screen refers to.
"use strict";

const batchesListed = 12;

/** Draws the table. @param {any} timeline @param {(place: number) => void} select shows the batch with this index in
 * the timeline */
function showBatches(timeline, select) {
  const { histories } = timeline;
  const waited = (place) => histories.between(place, "waitedFrom", "waitedTo");
  const all = histories.inOrder().filter((place) => waited(place) > 0);
  byId("batches-part").hidden = !all.length;
  if (!all.length) { byId("batches").replaceChildren(); return; }
  /** Returns the thread that built a batch, or how many did. */
  const builtBy = (place) => {
    const threads = new Set((histories.stages.get(place) || []).map((of) => of.track));
    return timeline.threadOf(histories.track[place]) || (threads.size > 1 ? threads.size + " threads" : "–");
  };
  const rows = all.sort((a, b) => waited(b) - waited(a)).slice(0, batchesListed);
  const time = (ns) => Number.isNaN(ns) ? "–" : humanTime(ns);
  const table = simpleTable("Batches that the consumer waited for longest", [
    ["batch", "The number that the program gave the batch; press it to see what happened to it"],
    ["waited for", "How long the consumer waited for the batch"],
    ["preprocessing", "How long the batch was worked on"], ["by", "The thread that worked on it"],
    ["buffered", "From when it was ready to when the consumer received it"],
    ["step", "How long the consumer worked on it"]],
  rows.map((place) => [linkTo(histories.nameOf(place), () => select(place)), time(waited(place)),
    time(histories.between(place, "started", "ready")), builtBy(place),
    time(histories.between(place, "ready", "consumed")), time(histories.between(place, "consumed", "stepEnd"))]));
  byId("batches").replaceChildren(...table.childNodes);
}

/** Scrolls to what a link of the first screen refers to, and selects it. @param {any} workbench */
function showTarget(workbench, target) {
  const { timeline, selection } = workbench;
  const view = (id) => {
    const part = byId(id);
    if (part.hidden) return false;
    part.scrollIntoView({ block: "start" });
    const first = part.querySelector("button.link") || part.querySelector("[tabindex]");
    if (first) first.focus({ preventScroll: true });
    return true;
  };
  const inTimeline = () => {
    byId("timeline-title").scrollIntoView({ block: "start" });
    workbench.canvas.focus({ preventScroll: true });
  };
  switch (target.kind) {
    case "batches":
      if (!view("batches-part")) inTimeline();
      return;
    case "stage":
      selection.operation(target.name);
      if (!view("stages-part")) inTimeline();
      return;
    case "operation":
      selection.operation(target.name);
      break;
    case "call":
      selection.call(target.name, target.at_ns, target.track);
      break;
    case "run":
      break;
    default:
      selection.range(target.at_ns, target.at_ns + target.ns);
      timeline.lookAt(target.at_ns, target.at_ns + target.ns);
  }
  inTimeline();
}
