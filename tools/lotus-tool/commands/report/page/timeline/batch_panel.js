// Shows the history of the selected batch: what happened to it, on which threads, and how it delayed the run.
"use strict";

/** Returns the batch's operations on the thread that preprocessed it: [name, count, total, longest]. */
function operationsOfBatch(timeline, place) {
  const { histories } = timeline;
  const lane = timeline.laneOf(histories.track[place]);
  const [from, to] = [histories.moment(place, "started"), histories.moment(place, "ready")];
  const found = new Map();
  if (!lane || Number.isNaN(from)) return [];
  const add = (name, count, ns, longest) => {
    const sum = found.get(name) || { count: 0, total: 0, longest: 0 };
    sum.count += count;
    sum.total += ns;
    sum.longest = Math.max(sum.longest, longest);
    found.set(name, sum);
  };
  for (const row of lane.rows) {
    if (row.kind !== "operations") continue;
    for (let i = row.firstEndingAfter(from); i < row.length && row.start[i] < to; ++i) {
      add(timeline.nameOf(row, row.name[i]), 1, row.duration(i), row.duration(i));
    }
  }
  if (lane.undrawn) lane.undrawn.between(from, to, (name, count, ns, longest) => add(shownName(report.op_names[name]), count, ns, longest));
  return [...found].sort((a, b) => b[1].total - a[1].total);
}

/** Returns the history of a batch as sentences: [what happened, when or how long]. */
function historyOf(timeline, place) {
  const { histories } = timeline;
  const thread = timeline.threadOf(histories.track[place]);
  const known = (name) => !Number.isNaN(histories.moment(place, name));
  const at = (name) => "at " + humanTime(histories.moment(place, name));
  const shown = [];
  if (known("dispatched")) shown.push(["dispatched", at("dispatched")]);
  if (known("started")) {
    shown.push(["preprocessed", "in " + humanTime(histories.between(place, "started", "ready")) + " from " +
      humanTime(histories.moment(place, "started")) + (thread ? " by " + thread : "")]);
  }
  if (known("ready") && known("consumed")) shown.push(["ready for", humanTime(histories.between(place, "ready", "consumed"))]);
  if (histories.outOfOrder[place]) shown.push(["waited for", "not (arrived early)"]);
  else if (known("waitedFrom")) shown.push(["waited for", humanTime(histories.between(place, "waitedFrom", "waitedTo"))]);
  if (known("consumed")) shown.push(["consumed", at("consumed")]);
  if (known("stepEnd")) shown.push(["consumer's step", humanTime(histories.between(place, "consumed", "stepEnd"))]);
  const onPath = histories.onPath[place];
  if (onPath >= 0) {
    const preprocessing = histories.between(place, "started", "ready");
    shown.push(["critical path", onPath === 0 ? "its preprocessing is not on it" :
      humanTime(onPath) + " of its preprocessing lie on it" + (preprocessing > 0 ? " (" + percent(Math.min(onPath / preprocessing, 1)) + ")" : "")]);
  }
  return shown;
}

function batchPanel(timeline, place, actions) {
  const { histories } = timeline;
  const parts = [element("h3", "Batch " + histories.nameOf(place))];
  const list = element("dl", undefined, "life");
  for (const [what, text] of historyOf(timeline, place)) list.append(element("dt", what), element("dd", text));
  const order = histories.inOrder();
  const position = order.indexOf(place);
  const bar = element("p", undefined, "bar");
  if (position > 0) bar.append(linkTo("previous batch", () => actions.selectBatch(order[position - 1])));
  if (position >= 0 && position + 1 < order.length) bar.append(linkTo("next batch", () => actions.selectBatch(order[position + 1])));
  bar.append(linkTo("zoom to it", () => timeline.lookAt(...histories.span(place))));
  parts.push(list, bar);
  const stages = histories.stages.get(place) || [];
  if (stages.length) {
    const ofItems = stages.some((of) => of.item !== undefined);
    const box = element("div", undefined, "scroll");
    box.append(simpleTable("Stages that built it", [["stage", "A stage that worked on this batch"],
      ...(ofItems ? [["item", "The item of this batch that the stage worked on"]] : []), ["from", "When the stage began, after the start of the run"], ["took", "How long the stage worked on it"],
      ["before it", "How long the batch waited between the stages"], ["thread", "The thread of the stage"]], stages.map((of, n) => {
      const before = stages.slice(0, n).filter((other) => other.item === of.item || of.item === undefined)
        .reduce((end, other) => Math.max(end, other.start + other.duration), -1);
      return [linkTo(of.name, () => actions.selectName(of.name)), ...(ofItems ? [of.item === undefined ? "–" : of.item] : []),
        humanTime(of.start), humanTime(of.duration),
        before < 0 || before >= of.start ? "–" : humanTime(of.start - before) + " in a queue", timeline.threadOf(of.track) || "–"];
    })));
    parts.push(box);
  }
  const ops = operationsOfBatch(timeline, place);
  if (ops.length) {
    const box = element("div", undefined, "scroll");
    box.append(simpleTable("Operations of this batch", [["operation", "What the thread ran while it preprocessed this batch"],
      ["count", "How many calls"], ["total", "The sum of their durations"], ["longest", "The duration of the longest call"]],
      ops.map(([name, sum]) => [linkTo(name, () => actions.selectName(name)), grouped(Math.round(sum.count)), humanTime(sum.total),
        humanTime(sum.longest)])));
    parts.push(box);
  }
  return parts;
}
