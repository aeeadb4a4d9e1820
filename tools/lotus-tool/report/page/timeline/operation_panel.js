// A selected operation: the one that was pointed at among all of its name.
"use strict";

const slowestListed = 10;
const firstBin = 100;  // ns; bins are half decades

function binEdge(bin) { return firstBin * 10 ** (bin / 2); }

function binOf(ns) { return Math.min(Math.max(Math.floor(2 * Math.log10(Math.max(ns, 1) / firstBin)), 0), 19); }

/** Counts by duration, with an axis; pressed bars show their durations in the timeline, with Shift all from the
 * one pressed before. @param {number[]|undefined} chosen first and last bar */
function histogramWithAxis(counts, fill, marked, chosen, onBar) {
  let low = counts.findIndex((n) => n > 0);
  let high = counts.length - 1;
  while (high > low && !counts[high]) --high;
  low = Math.max(0, low - 1);
  high = Math.min(counts.length - 1, high + 1);
  const [wide, tall] = [46, 90];
  const width = (high - low + 1) * wide;
  const svg = svgElement("svg", { viewBox: "0 0 " + (width + 10) + " " + (tall + 38), class: "histogram", role: "group",
    "aria-label": "How many took how long" });
  const most = Math.max(...counts, 1);
  for (let bin = low; bin <= high; ++bin) {
    const x = (bin - low) * wide;
    const height = counts[bin] ? Math.max(2, tall * Math.sqrt(counts[bin] / most)) : 0;
    const text = grouped(counts[bin]) + " took " + humanTime(binEdge(bin)) + " to " + humanTime(binEdge(bin + 1));
    const bar = svgElement("rect", { x: x + 1, y: 14 + tall - height, width: wide - 2, height, fill,
      opacity: !chosen || bin >= chosen[0] && bin <= chosen[1] ? 1 : 0.35,
      stroke: bin === marked ? "currentColor" : "none", "stroke-width": 2 });
    const label = svgElement("title", {});
    label.textContent = text;
    bar.append(label);
    svg.append(bar);
    const number = svgElement("text", { x: x + wide / 2, y: 10 + tall - height, "text-anchor": "middle" });
    number.textContent = counts[bin] ? Number(counts[bin]).toLocaleString("en", { notation: "compact" }) : "";
    svg.append(number);
    const edge = svgElement("text", { x: x + 1, y: tall + 28, "text-anchor": "middle" });
    edge.textContent = humanTime(Number(binEdge(bin).toPrecision(2)));
    if (bin > low) svg.append(edge);
    if (!counts[bin]) continue;
    const press = svgElement("rect", { x, y: 0, width: wide, height: tall + 14, fill: "transparent", tabindex: 0, role: "button",
      "aria-label": text + ": show these" });
    press.addEventListener("click", (event) => onBar(bin, event.shiftKey));
    press.addEventListener("keydown", (event) => { if (event.key === "Enter") onBar(bin, event.shiftKey); });
    svg.append(press);
  }
  return svg;
}

/** @param {any} selection {name, hit, slowest, bins} */
function operationPanel(timeline, selection, actions) {
  const { name, hit, slowest } = selection;
  const op = timeline.run.ops.find((of) => shownName(of.name) === name);
  const parts = [element("h3", name)];
  if (hit) {
    const { lane, row, i } = hit;
    const batch = timeline.batchOf(lane, row, i);
    const cpu = timeline.cpuOf(lane, row, i);
    const rank = slowest.findIndex((of) => of.row === row && of.i === i);
    parts.push(element("p", humanTime(row.duration(i)) + (cpu === undefined ? "" : " (" + humanTime(cpu) + " on CPU)") +
      " from " + humanTime(row.start[i]) + ", " + lane.title + (batch >= 0 ? ", batch " + timeline.lives.nameOf(batch) : "") +
      (rank >= 0 ? ": number " + (rank + 1) + " of the slowest" : "")));
    const bar = element("p", undefined, "bar");
    bar.append(linkTo("next slowest (n)", () => actions.next()));
    if (batch >= 0) bar.append(linkTo("its batch", () => actions.selectBatch(batch)));
    bar.append(linkTo("zoom to it", () => timeline.lookAt(row.start[i], row.end[i])));
    parts.push(bar);
  }
  if (op) {
    parts.push(element("p", grouped(op.count) + " in all: mean " + humanTime(op.mean_ns) + ", p50 " + humanTime(op.p50_ns) +
      ", p99 " + humanTime(op.p99_ns) + ", longest " + humanTime(op.max_ns) + ", total " + humanTime(op.total_ns)));
    parts.push(histogramWithAxis(op.histogram, operationColour(name), hit ? binOf(hit.row.duration(hit.i)) : -1,
      selection.bins, (bin, on) => actions.selectDurations(name, bin, on ? selection.bins : undefined)));
    parts.push(element("p", selection.bins ? "Shown above: those that took " + humanTime(binEdge(selection.bins[0])) + " to " +
      humanTime(binEdge(selection.bins[1] + 1)) + "." : "Press a bar to see these alone, with Shift another to see all between.", "note"));
  }
  const box = element("div", undefined, "scroll");
  box.append(simpleTable("The slowest", ["slowest", "start", "thread", "batch"], slowest.slice(0, slowestListed).map((of, n) => {
    const batch = timeline.batchOf(of.lane, of.row, of.i);
    return [linkTo(humanTime(of.row.duration(of.i)), () => actions.selectSlowest(n)), humanTime(of.row.start[of.i]),
      of.lane.title, batch >= 0 ? timeline.lives.nameOf(batch) : "–"];
  })));
  parts.push(box);
  return parts;
}
