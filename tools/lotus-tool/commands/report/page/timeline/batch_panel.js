// Shows the history of the selected batch: what happened to it, on which threads, and how it delayed the run.
"use strict";

/** Returns the batch's operations on the thread that preprocessed it: [name, count, total, longest]. */
function operationsOfBatch(timeline, place) {
  const { lives } = timeline;
  const lane = timeline.lanes.find((of) => of.number === lives.track[place]);
  const [from, to] = [lives.moment(place, "begun"), lives.moment(place, "ready")];
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

/** Returns the history as sentences: [what happened, when or how long]. */
function lifeOf(timeline, place) {
  const { lives } = timeline;
  const lane = timeline.lanes.find((of) => of.number === lives.track[place]);
  const known = (name) => !Number.isNaN(lives.moment(place, name));
  const at = (name) => "at " + humanTime(lives.moment(place, name));
  const told = [];
  if (known("given out")) told.push(["given out", at("given out")]);
  if (known("begun")) {
    told.push(["made", "in " + humanTime(lives.between(place, "begun", "ready")) + " from " +
      humanTime(lives.moment(place, "begun")) + (lane ? " by " + lane.title : "")]);
  }
  if (known("ready") && known("consumed")) told.push(["lay ready", humanTime(lives.between(place, "ready", "consumed"))]);
  if (lives.outOfOrder[place]) told.push(["waited for", "not: it came before its turn"]);
  else if (known("waitedFrom")) told.push(["waited for", humanTime(lives.between(place, "waitedFrom", "waitedTo"))]);
  if (known("consumed")) told.push(["consumed", at("consumed")]);
  if (known("stepEnd")) told.push(["consumer's step", humanTime(lives.between(place, "consumed", "stepEnd"))]);
  const onPath = lives.onPath[place];
  if (onPath >= 0) {
    const making = lives.between(place, "begun", "ready");
    told.push(["critical path", onPath === 0 ? "its making is not on it" :
      humanTime(onPath) + " of its making lie on it" + (making > 0 ? " (" + percent(Math.min(onPath / making, 1)) + ")" : "")]);
  }
  return told;
}

function batchPanel(timeline, place, actions) {
  const { lives } = timeline;
  const parts = [element("h3", "Batch " + lives.nameOf(place))];
  const list = element("dl", undefined, "life");
  for (const [what, text] of lifeOf(timeline, place)) list.append(element("dt", what), element("dd", text));
  const order = lives.inOrder();
  const turn = order.indexOf(place);
  const bar = element("p", undefined, "bar");
  if (turn > 0) bar.append(linkTo("batch before", () => actions.selectBatch(order[turn - 1])));
  if (turn >= 0 && turn + 1 < order.length) bar.append(linkTo("batch behind", () => actions.selectBatch(order[turn + 1])));
  bar.append(linkTo("zoom to it", () => timeline.lookAt(...lives.span(place))));
  parts.push(list, bar);
  const stages = lives.stages.get(place) || [];
  if (stages.length) {
    const thread = (track) => { const lane = timeline.lanes.find((of) => of.number === track); return lane ? lane.title : "–"; };
    const box = element("div", undefined, "scroll");
    box.append(simpleTable("Stages that made it", [["stage", "A stage that worked on this batch"],
      ["from", "When the stage began, after the start of the run"], ["took", "How long the stage worked on it"],
      ["before it", "How long the batch waited between the stages"], ["thread", "The thread of the stage"]], stages.map((of, n) => {
      const before = stages.slice(0, n).reduce((end, other) => Math.max(end, other.start + other.duration), -1);
      return [linkTo(of.name, () => actions.selectName(of.name)), humanTime(of.start), humanTime(of.duration),
        before < 0 || before >= of.start ? "–" : humanTime(of.start - before) + " in a queue", thread(of.track)];
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
