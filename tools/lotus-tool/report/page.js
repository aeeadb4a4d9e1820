// Text parts of the report: the verdicts. Names come from logs and may hold anything, so they only
// ever become text nodes.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const palette = ["#4e79a7", "#f28e2b", "#76b7b2", "#b07aa1", "#edc948", "#59a14f", "#ff9da7", "#9c755f",
  "#86bcb6", "#d37295", "#8cd17d", "#b6992d"];

function colour(i) { return palette[i % palette.length]; }

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** A duration in ns with a fitting unit. */
function humanTime(ns) {
  if (ns === null || ns === undefined) return "–";
  const size = Math.abs(ns);
  if (size === 0) return "0";
  const units = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  let unit = units[0];
  for (const u of units) if (size >= u[0]) unit = u;
  return Number((ns / unit[0]).toPrecision(4)) + " " + unit[1];
}

function batchesPerSecond(rate) { return Number(rate.toPrecision(3)) + " batches/s"; }

function percent(share) { return (share * 100).toFixed(1) + " %"; }

function element(kind, text, className) {
  const e = document.createElement(kind);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

function showVerdicts() {
  const place = document.getElementById("verdicts");
  for (const run of report.runs) {
    const box = element("div", undefined, "verdict");
    box.append(element("p", run.verdict ? run.verdict.sentence : run.no_verdict, "sentence"));
    if (report.runs.length > 1) box.append(element("p", run.name, "run"));
    for (const check of run.checks) {
      box.append(element("p", check.id + ": " + check.text, check.unsafe ? "check unsafe" : "check"));
    }
    if (run.deleted) box.append(element("p", run.deleted, "check"));
    const facts = element("ul", undefined, "facts");
    const fact = (name, value) => {
      const item = element("li", name + " ");
      item.append(element("b", value));
      facts.append(item);
    };
    fact("batches", run.batch_count);
    if (run.dropped) facts.title = run.dropped;
    if (run.verdict) {
      const v = run.verdict;
      if (v.workers) fact("workers", v.workers);
      if (v.achieved_batches_per_s !== null) fact("achieved", batchesPerSecond(v.achieved_batches_per_s));
      fact("waiting", percent(v.wait_share));
      fact("of it behind later batches", percent(v.head_of_line_share));
      if (v.preprocessing_capacity !== null) {
        fact(v.workers ? "workers could make" : "stages could make", batchesPerSecond(v.preprocessing_capacity));
      }
      if (v.consumer_capacity !== null) {
        fact("consumer could take", batchesPerSecond(v.consumer_capacity));
      }
      for (const move of v.moves.slice(1)) fact("or", move.text);
    }
    box.append(facts);
    place.append(box);
  }
  const only = report.runs[0];
  document.getElementById("about").textContent =
    report.runs.length === 1 ? only.dir + (only.loader ? " (loader " + only.loader + ")" : "") : report.runs.length + " runs";
}
