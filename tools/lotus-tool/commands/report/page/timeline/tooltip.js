// Shows a description of the slice under the pointer.
"use strict";

/** Returns what is known about a slice, as [name, text]. */
function partsOf(timeline, { lane, row, i }) {
  const parts = [];
  if (row.kind === "counter") return [["value", String(row.name[i])], ["since", humanTime(row.start[i])],
    ["for", humanTime(row.duration(i))]];
  const batch = timeline.batchOf(lane, row, i);
  if (batch >= 0) parts.push(["batch", String(timeline.histories.index[batch])]);
  const work = batch >= 0 && row.kind !== "batches" ? timeline.workAt(lane, row.start[i]) : undefined;
  if (work && work.item !== undefined) parts.push(["item", String(work.item)]);
  if (batch >= 0 && timeline.histories.epochs > 1) parts.push(["epoch", String(timeline.histories.epoch[batch])]);
  if (timeline.run.loader) parts.push(["loader", timeline.run.loader]);
  parts.push(["start", humanTime(row.start[i])], ["duration", humanTime(row.duration(i))]);
  const cpu = timeline.cpuOf(lane, row, i);
  if (cpu !== undefined) parts.push(["on CPU", humanTime(cpu)]);
  return parts;
}

class Tooltip {
  constructor(timeline, box, outline) {
    this.timeline = timeline;
    this.box = box;
    this.outline = outline;
  }

  hide() { this.box.hidden = this.outline.hidden = true; }

  /** Shows the tooltip for the slice at a position. @param x and y are positions in the canvas */
  show(x, y) {
    const hit = this.timeline.hit(x, y);
    if (!hit) { this.hide(); return; }
    const { lane, row, i } = hit;
    const list = element("dl");
    for (const [name, text] of partsOf(this.timeline, hit)) list.append(element("dt", name), element("dd", text));
    this.box.replaceChildren(element("b", row.kind === "counter" ? lane.title : this.timeline.titleOf(row, i)),
      element("div", row.kind === "counter" ? "" : this.timeline.threadAt(lane, row.start[i]).title, "quiet"), list);
    this.box.hidden = this.outline.hidden = false;
    const left = x + 14 + this.box.offsetWidth > this.timeline.width ? x - 14 - this.box.offsetWidth : x + 14;
    this.box.style.left = Math.max(left, 0) + "px";
    this.box.style.top = y + 16 + "px";
    const from = Math.max(this.timeline.x(row.start[i]), this.timeline.left);
    const to = Math.min(this.timeline.x(row.end[i]), this.timeline.width);
    this.outline.style.left = from - 1 + "px";
    this.outline.style.width = Math.max(to - from, 1) + 2 + "px";
    this.outline.style.top = row.y - 1 + "px";
    this.outline.style.height = heightOf(row) + "px";
  }
}
