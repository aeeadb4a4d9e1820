// Shows how a selected range of time was spent.
"use strict";

/** By name: {count, ns}; `name` is undefined outside of operations. Slices that the range cuts count in part. */
function sumsBetween(timeline, from, to) {
  const sums = new Map();
  const add = (key, name, count, ns) => {
    const sum = sums.get(key) || { name, count: 0, ns: 0 };
    sum.count += count;
    sum.ns += ns;
    sums.set(key, sum);
  };
  for (const lane of timeline.lanes) {
    for (const row of lane.rows) {
      if (row.kind === "counter" || lane.number === undefined) continue;
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
  return [...sums].sort((a, b) => b[1].ns - a[1].ns);
}

function rangePanel(timeline, range, actions) {
  const length = range.to - range.from;
  const handed = timeline.lives.moments[momentNames.indexOf("consumed")].filter((t) => t >= range.from && t < range.to).length;
  const parts = [element("h3", humanTime(length) + " from " + humanTime(range.from) + " to " + humanTime(range.to))];
  if (handed) {
    parts.push(element("p", handed + " batches were consumed" +
      (timeline.lives.complete ? ": " + batchesPerSecond(handed * 1e9 / length) : "") + "."));
  }
  const bar = element("p", undefined, "bar");
  bar.append(linkTo("zoom to it", () => timeline.look(range.from, range.to)), linkTo("clear (Esc)", () => actions.clear()));
  const box = element("div", undefined, "scroll");
  box.append(simpleTable("What this stretch was spent on", ["what", "count", "time", "threads in it, mean", "mean"],
    sumsBetween(timeline, range.from, range.to).map(([key, sum]) => [
      sum.name ? linkTo(sum.name, () => actions.selectName(sum.name)) : key, grouped(sum.count), humanTime(sum.ns),
      threeDigits(sum.ns / length), humanTime(sum.ns / sum.count)])));
  parts.push(bar, box);
  return parts;
}
