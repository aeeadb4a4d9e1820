// Compares two runs: what became slower, by how much, and what else differed.
"use strict";

/** Returns a change as "+12.3 %" or, if the value at least doubled, as "8.37×". */
function changeText(change) {
  return change >= 1 ? threeDigits(1 + change) + "×" : (change > 0 ? "+" : "") + percent(change);
}

/** Returns whether a row of `lotus-tool compare` became "slower" or "faster", or "not significant"; "" if the row
 * has no confidence interval. */
function judgement(row) {
  if (row.low === null) return "";
  if (row.low <= 0 && row.high >= 0) return "not significant";
  return row.change > 0 ? "slower" : "faster";
}

/** Returns the words in which two texts differ, with "…" for the words before and after that are equal. */
function differingWords(a, b) {
  const [x, y] = [a.split(" "), b.split(" ")];
  const shorter = Math.min(x.length, y.length);
  let before = 0;
  while (before < shorter && x[before] === y[before]) ++before;
  let after = 0;
  while (after < shorter - before && x[x.length - 1 - after] === y[y.length - 1 - after]) ++after;
  return [x, y].map((words) => (before ? "… " : "") + words.slice(before, words.length - after).join(" ") + (after ? " …" : ""));
}

/** Returns the facts that differ between the runs as [fact, before, after]. */
function differences(a, b) {
  const facts = (run) => ({ command: commandText(run), host: run.facts.hosts.join(", "), CPUs: run.facts.cpus, ranks: run.facts.ranks, threads: run.facts.threads,
    workers: run.verdict ? run.verdict.workers : undefined, batches: run.batch_count,
    "samples per batch": run.verdict && run.verdict.samples_per_batch ? threeDigits(run.verdict.samples_per_batch) : undefined,
    verdict: run.verdict ? run.verdict.verdict : undefined });
  const [before, after] = [facts(a), facts(b)];
  const text = (value) => value === undefined || value === "" ? "–" : String(value);
  return Object.keys(before).filter((key) => text(before[key]) !== text(after[key])).map((key) =>
    [key, ...(key === "command" && before[key] && after[key] ? differingWords(before[key], after[key]) : [text(before[key]), text(after[key])])]);
}

let comparisonChart = undefined;

/** Draws the histograms of an operation's durations in both runs over each other. */
function drawComparison({ before, after }) {
  if (comparisonChart) comparisonChart.destroy();
  const name = byId("compare-choice").selectedOptions[0].textContent;
  const [a, b] = [before, after].map((run) => run.ops.find((of) => shownName(of.name) === name));
  const known = [a, b].filter((op) => op).map((op) => op.histogram);
  const { low, high, wide } = fitBars(Math.min(...known.map((of) => of.first)),
    Math.max(...known.map((of) => of.first + of.counts.length)), 30);
  const both = [a, b].map((op) => barsBetween(op ? op.histogram : { first: 0, counts: [] }, low, high, wide));
  const datasets = both.map((counts, i) => ({
    label: [before, after][i].name, borderColor: runColour(i), backgroundColor: runColour(i) + "44", fill: true, stepped: "middle",
    pointRadius: 0, borderDash: runDash(i),
    data: counts.map((count) => 100 * count / Math.max(counts.reduce((sum, n) => sum + n, 0), 1)),
  }));
  comparisonChart = new Chart(byId("compare-chart"), { type: "line",
    data: { labels: both[0].map((_, bar) => humanTime(Number(binEdge(low + (bar + 0.5) * wide).toPrecision(2)))), datasets },
    options: options(axis("duration", { ticks: { color: cssColour("quiet"), maxRotation: 0, autoSkipPadding: 14 } }), axis("% of " + name, { beginAtZero: true }), true) });
  byId("compare-chart").setAttribute("aria-label", "How long " + name + " took in both runs");
}

function showComparison() {
  const pairs = comparedPairs();
  byId("compare-part").hidden = !pairs.length;
  if (!pairs.length) return;
  fillChoice("compare-loader", pairs.map((pair) => pair.loader || "default loader"), () => showPair(pairs[Number(byId("compare-loader").value)]));
  byId("compare-loader-choice").hidden = pairs.length < 2;
  showPair(pairs[0]);
}

function showPair(pair) {
  const { before: a, after: b } = pair;
  const mean = (of) => of.mean_ns === null ? "–" : humanTime(of.mean_ns);
  const rows = report.comparison.rows.filter((row) => (row.loader || "") === pair.loader);
  const size = (row) => row.change === null ? 0 : Math.abs(Math.log(1 + row.change));
  rows.sort((x, y) => size(y) - size(x));
  const table = simpleTable("Means of both runs", [
    ["mean of", "An operation, or a quantity of each batch"], [a.name, "Mean in the first run"], [b.name, "Mean in the second run"],
    ["change", "From the first run to the second; shown as a factor if it at least doubled"],
    ["95 % interval", "The change lies within these limits in 95 of 100 such pairs of runs"],
    ["result", "Slower or faster; not significant: the interval includes no change"]], rows.map((row) =>
    [row.title, mean(row.before), mean(row.after), row.change === null ? "–" : changeText(row.change),
      row.low === null ? "–" : changeText(row.low) + " to " + changeText(row.high), judgement(row)]));
  byId("compare-table").replaceChildren(...table.childNodes);
  const changed = differences(a, b);
  byId("compare-facts").replaceChildren(element("h3", "What was different"), changed.length ?
    simpleTable("What was different", [["what", "A fact of the run"], [a.name, "In the first run"], [b.name, "In the second run"]], changed) : element("p", "The logs show no other difference."));
  const names = rows.filter((row) => row.kind === "op" && row.before.count && row.after.count).map((row) => row.title);
  fillChoice("compare-choice", names, () => drawComparison(pair));
  if (names.length) drawComparison(pair);
}

/** The timeline of the other run of a comparison, below the chosen one and always on the same scale. */
class AlignedTimeline {
  /** @param {any} timeline the one above @param {(run: any) => void} choose shows a run in the one above */
  constructor(timeline, choose) {
    this.timeline = timeline;
    this.canvas = byId("aligned-timeline");
    this.other = new Timeline(this.canvas);
    byId("aligned-name").addEventListener("click", () => choose(this.other.run));
  }

  /** Returns the run that is compared with a run; undefined if there is none. */
  otherThan(run) {
    const pair = comparedPairs().find((of) => of.before === run || of.after === run);
    return pair && (pair.before === run ? pair.after : pair.before);
  }

  /** Shows a run. @param {any} laidOut the result of layOut() */
  show(run, laidOut) {
    byId("aligned").hidden = !run;
    this.other.run = run;
    if (!run) return;
    this.other.leastSpan = this.timeline.run.timeline.span_ns;
    this.other.show(run, laidOut);
    byId("aligned-name").textContent = run.name;
    byId("aligned-name").title = "Show this run in the timeline above, where its parts can be selected";
    this.canvas.setAttribute("aria-label", "Timeline of " + run.name + ", on the same scale of time");
    this.follow();
  }

  follow() { if (this.other.run) this.other.look(this.timeline.from, this.timeline.to); }
}
