// Two runs beside each other: what became slower, by how much, and what was different.
"use strict";

/** Two runs of one loader; two loaders of one run are no comparison. */
function comparable() {
  const [a, b] = report.runs;
  return report.runs.length === 2 && (a.loader || "") === (b.loader || "") && a.dir !== b.dir;
}

/** Ratio of two means with the half width of its 95 % interval, by their standard errors. */
function ratioOf(before, after) {
  if (!before || !after || !before.count || !after.count || !before.mean_ns) return undefined;
  const ratio = after.mean_ns / before.mean_ns;
  if (before.count < 5 || after.count < 5 || before.std_ns === undefined || after.std_ns === undefined) return { ratio };
  const part = (of) => (of.std_ns / of.mean_ns) ** 2 / of.count;
  return { ratio, half: 1.96 * ratio * Math.sqrt(part(before) + part(after)) };
}

const beyondChance = (change) => change && change.half !== undefined && Math.abs(change.ratio - 1) > change.half;

function ratioText(change) {
  if (!change) return "–";
  const digits = (value) => value >= 100 ? value.toFixed(0) : value.toFixed(2);
  return digits(change.ratio) + (change.half === undefined ? "×" : " ± " + digits(change.half) + "×");
}

/** The operation whose own time a batch changed most. */
function mainCause(a, b) {
  const perBatch = (run, name) => {
    const op = run.ops.find((of) => of.name === name);
    return op ? op.self_ns / Math.max(run.batch_count, 1) : 0;
  };
  const names = [...new Set([...a.ops, ...b.ops].map((op) => op.name))];
  const changes = names.map((name) => ({ name, by: perBatch(b, name) - perBatch(a, name) }));
  return changes.sort((x, y) => Math.abs(y.by) - Math.abs(x.by))[0];
}

function comparisonSentence(a, b) {
  const change = ratioOf(a.preprocess, b.preprocess);
  const told = [];
  if (!change) told.push("Preprocessing of a batch is not known of both.");
  else if (!beyondChance(change)) told.push("Preprocessing of a batch did not change beyond chance from " + a.name + " to " + b.name + ".");
  else {
    const slower = change.ratio >= 1;
    const times = slower ? change : { ratio: 1 / change.ratio, half: change.half / change.ratio ** 2 };
    const cause = mainCause(a, b);
    told.push("Preprocessing of a batch became " + ratioText(times).replace("×", "") + " times " + (slower ? "slower" : "faster") +
      " from " + a.name + " to " + b.name + (cause && cause.by ? ": " + shownName(cause.name) + " takes " +
      humanTime(Math.abs(cause.by)) + (cause.by > 0 ? " more" : " less") + " a batch." : "."));
  }
  const [size, other] = [a, b].map((run) => run.verdict && run.verdict.samples_per_batch);
  if (size && other && Math.abs(size / other - 1) > 0.02) {
    told.push("Batches have " + threeDigits(size) + " and " + threeDigits(other) + " samples: compare operations rather than batches.");
  }
  const rates = [a, b].map((run) => run.verdict && run.verdict.achieved_batches_per_s);
  if (rates[0] && rates[1]) told.push("Achieved: " + batchesPerSecond(rates[0]) + " before, " + batchesPerSecond(rates[1]) + " after.");
  return told.join(" ");
}

/** The facts in which they differ: [what, before, after]. */
function differences(a, b) {
  const facts = (run) => ({ host: run.facts.hosts.join(", "), CPUs: run.facts.cpus, ranks: run.facts.ranks, threads: run.facts.threads,
    workers: run.verdict ? run.verdict.workers : undefined, batches: run.batch_count,
    "samples a batch": run.verdict && run.verdict.samples_per_batch ? threeDigits(run.verdict.samples_per_batch) : undefined,
    verdict: run.verdict ? run.verdict.verdict : undefined });
  const [before, after] = [facts(a), facts(b)];
  const text = (value) => value === undefined || value === "" ? "–" : String(value);
  return Object.keys(before).filter((key) => text(before[key]) !== text(after[key])).map((key) => [key, text(before[key]), text(after[key])]);
}

let comparisonChart = undefined;

/** Shares by duration of both, one over the other. */
function drawComparison() {
  if (comparisonChart) comparisonChart.destroy();
  const name = byId("compare-choice").selectedOptions[0].textContent;
  const [a, b] = report.runs.map((run) => run.ops.find((of) => shownName(of.name) === name));
  const both = [a, b].map((op) => op ? op.histogram : new Array(20).fill(0));
  let low = 0;
  let high = 19;
  while (low < high && both.every((counts) => !counts[low])) ++low;
  while (high > low && both.every((counts) => !counts[high])) --high;
  const bins = both[0].slice(low, high + 1).map((_, i) => low + i);
  const fills = [cssColour("accent"), cssColour("wait")];
  const datasets = both.map((counts, i) => ({
    label: report.runs[i].name, borderColor: fills[i], backgroundColor: fills[i] + "55", fill: true, stepped: "middle", pointRadius: 0,
    borderDash: i ? [6, 4] : [],
    data: bins.map((bin) => 100 * counts[bin] / Math.max(counts.reduce((sum, n) => sum + n, 0), 1)),
  }));
  comparisonChart = new Chart(byId("compare-chart"), { type: "line",
    data: { labels: bins.map((bin) => humanTime(Number(binEdge(bin + 0.5).toPrecision(2)))), datasets },
    options: options(axis("took about"), axis("% of " + name, { beginAtZero: true }), true) });
  byId("compare-chart").setAttribute("aria-label", "How long " + name + " took in both runs");
}

function showComparison() {
  if (!comparable()) return;
  const [a, b] = report.runs;
  byId("compare-part").hidden = false;
  const rows = [{ name: "preprocessing of a batch", before: a.preprocess, after: b.preprocess }];
  for (const name of [...new Set([...a.ops, ...b.ops].map((op) => op.name))]) {
    rows.push({ name: shownName(name), before: a.ops.find((op) => op.name === name), after: b.ops.find((op) => op.name === name) });
  }
  for (const row of rows) row.change = ratioOf(row.before, row.after);
  rows.sort((x, y) => Math.abs(Math.log(y.change ? y.change.ratio : 1)) - Math.abs(Math.log(x.change ? x.change.ratio : 1)));
  const mean = (of) => of && of.count ? humanTime(of.mean_ns) : "–";
  const table = simpleTable("Means of both runs", ["what", a.name, b.name, "change", "is it?"], rows.map((row) =>
    [row.name, mean(row.before), mean(row.after), ratioText(row.change),
      !row.change || row.change.half === undefined ? "" : beyondChance(row.change) ? (row.change.ratio > 1 ? "slower" : "faster") : "chance"]));
  byId("compare-table").replaceChildren(...table.childNodes);
  const changed = differences(a, b);
  byId("compare-facts").replaceChildren(element("h3", "What was different"), changed.length ?
    simpleTable("What was different", ["what", a.name, b.name], changed) : element("p", "Nothing that the logs tell of."));
  const names = rows.slice(1).filter((row) => row.before && row.after).map((row) => row.name);
  fillChoice("compare-choice", names, drawComparison);
  if (names.length) drawComparison();
}
