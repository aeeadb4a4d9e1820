// Shows how a selected range of time was spent.
"use strict";

/** Sums up the operations in a range: returns {count, ns} for each name; the time outside of operations has the name
 * undefined. If only a part of a slice is inside the range, only this part is counted. */
function sumsBetween(timeline, from, to) {
  const sums = new Map();
  let exact = true;
  const add = (key, name, count, ns) => {
    const sum = sums.get(key) || { name, count: 0, ns: 0 };
    sum.count += count;
    sum.ns += ns;
    sums.set(key, sum);
  };
  for (const lane of timeline.lanes) {
    if (lane.undrawn) {
      exact = lane.undrawn.between(from, to, (name, count, ns) => {
        const shown = shownName(report.op_names[name]);
        add(shown, shown, count, ns);
      }) && exact;
    }
    for (const row of lane.rows) {
      if (row.kind === "counter" || !lane.threads) continue;
      for (let i = row.firstEndingAfter(from); i < row.length && row.start[i] < to; ++i) {
        const share = (Math.min(row.end[i], to) - Math.max(row.start[i], from)) / Math.max(row.duration(i), 1);
        const joined = row.joined.get(i);
        if (row.kind === "operations") {
          const name = timeline.nameOf(row, row.name[i]);
          add(name, name, 1, share * row.duration(i));
        } else {
          const kind = row.kind === "batches" ? kindNames[Math.floor(row.name[i] / 1e9)] : reasonNames[row.name[i]];
          add("– " + kind, undefined, joined ? joined.count : 1, share * row.busy(i));
        }
      }
    }
  }
  return { sums: [...sums].sort((a, b) => b[1].ns - a[1].ns), exact };
}

function rangePanel(timeline, range, actions) {
  const length = range.to - range.from;
  const consumed = timeline.histories.moments[momentNames.indexOf("consumed")].filter((t) => t >= range.from && t < range.to).length;
  const parts = [element("h3", humanTime(length) + " from " + humanTime(range.from) + " to " + humanTime(range.to))];
  if (consumed) {
    parts.push(element("p", consumed + (consumed === 1 ? " batch was consumed" : " batches were consumed") +
      (timeline.histories.complete ? ": " + batchesPerSecond(consumed * 1e9 / length) : "") + "."));
  }
  const bar = element("p", undefined, "bar");
  bar.append(linkTo("zoom to it", () => timeline.look(range.from, range.to)), linkTo("clear (Esc)", () => actions.clear()));
  const { sums, exact } = sumsBetween(timeline, range.from, range.to);
  const box = element("div", undefined, "scroll");
  box.append(simpleTable("How this range was spent", [["what", "An operation, or what a thread did outside of operations"],
    ["count", "How many of them overlap the range"], ["time", "Their time within the range, on all threads"],
    ["threads, mean", "How many threads were in it at once, on average"], ["mean", "The time within the range, divided by the count"]],
    sums.map(([key, sum]) => [
      sum.name ? linkTo(sum.name, () => actions.selectName(sum.name)) : key, grouped(Math.round(sum.count)), humanTime(sum.ns),
      threeDigits(sum.ns / length), humanTime(sum.ns / sum.count)])));
  parts.push(bar, box);
  if (!exact) {
    parts.push(element("p", "Of operations that are too short to be drawn, only the sums of each batch are known. If this range " +
      "contains a part of a batch, the same part of its sums counts.", "note"));
  }
  return parts;
}
