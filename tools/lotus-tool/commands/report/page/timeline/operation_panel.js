// Shows the selected operation: the slice that the user chose, compared with all others of the same name.
"use strict";

const slowestListed = 10;

/** Returns what an operation was blocked on, each with the calls in which a thread waited most often. */
function waitParts(waits) {
  if (!waits.length) return [];
  const list = element("div", undefined, "waits");
  waits.forEach((of, i) => {
    const title = of.text + ": " + humanTime(of.ns) + ", " + percent(of.share) + " of the blocked time (" +
      grouped(of.samples) + (of.samples === 1 ? " sample)" : " samples)");
    if (!of.stack) {
      list.append(element("p", title));
      return;
    }
    const entry = element("details");
    entry.open = i === 0;
    const calls = element("ol");
    for (const call of of.stack) calls.append(element("li", call));
    entry.append(element("summary", title), calls);
    list.append(entry);
  });
  return [element("h4", "Blocked on"), list];
}

/** Returns the elements of the panel. @param {any} selection as TimelineSelection.operation() creates it @param actions
 * the functions that links in the panel call @param room width for pictures in pixels */
function operationPanel(timeline, selection, actions, room) {
  const { name, hit, slowest } = selection;
  const op = timeline.run.ops.find((of) => shownName(of.name) === name);
  const parts = [element("h3", name)];
  if (hit) {
    const { lane, row, i } = hit;
    const batch = timeline.batchOf(lane, row, i);
    const cpu = timeline.cpuOf(lane, row, i);
    const rank = slowest.findIndex((of) => of.row === row && of.i === i);
    parts.push(element("p", humanTime(row.duration(i)) + (cpu === undefined ? "" : " (" + humanTime(cpu) + " on CPU)") +
      " from " + humanTime(row.start[i]) + ", " + timeline.threadAt(lane, row.start[i]).title + (batch >= 0 ? ", batch " + timeline.batchText(lane, row, i) : "") +
      (rank >= 0 ? ": number " + (rank + 1) + " of the slowest" : "")));
    const bar = element("p", undefined, "bar");
    bar.append(linkTo("next slowest (n)", () => actions.next()));
    if (batch >= 0) bar.append(linkTo("its batch", () => actions.selectBatch(batch)));
    bar.append(linkTo("zoom to it", () => timeline.lookAt(row.start[i], row.end[i])));
    parts.push(bar);
  }
  if (op) {
    parts.push(element("p", grouped(op.count) + (op.count === 1 ? " call: mean " : " calls: mean ") + humanTime(op.mean_ns) + ", p50 " + humanTime(op.p50_ns) +
      ", p99 " + humanTime(op.p99_ns) + ", longest " + humanTime(op.max_ns) + ", total " + humanTime(op.total_ns)));
    parts.push(...histogramParts(op.histogram, operationColour(name),
      { marked: hit ? hit.row.duration(hit.i) : undefined, took: selection.took, axis: selection.axis, room },
      { choose: (took) => actions.selectDurations(name, took), look: (axis) => actions.lookAtDurations(axis) }));
  }
  parts.push(...waitParts(waitsOf(name, timeline.run)));
  const box = element("div", undefined, "scroll");
  box.append(simpleTable("The slowest", [["slowest", "How long the call took; press it to go there"],
    ["start", "When the call began, after the start of the run"], ["thread", "The thread that it ran on"],
    ["batch", "The batch that the thread worked on"]], slowest.slice(0, slowestListed).map((of, n) =>
    [linkTo(humanTime(of.row.duration(of.i)), () => actions.selectSlowest(n)), humanTime(of.row.start[of.i]),
      timeline.threadAt(of.lane, of.row.start[of.i]).title, timeline.batchText(of.lane, of.row, of.i) || "–"])));
  parts.push(box);
  return parts;
}
