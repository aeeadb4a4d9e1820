// Draws the heap over time, and shows which memory leaks with every batch.
"use strict";

const heapCounters = (run) => (run.timeline.counters || []).filter((counter) => /^heap bytes(, pid |$)/.test(counter.name));

function showLeaks() {
  const list = byId("leaks");
  for (const run of report.runs) {
    for (const text of run.leaks) list.append(element("li", (report.runs.length > 1 ? run.name + ": " : "") + text));
  }
  byId("memory-part").hidden = !report.runs.some((run) => heapCounters(run).length);
}

function heapChart() {
  if (byId("memory-part").hidden) return [];
  const lines = report.runs.flatMap((run) => heapCounters(run).map((counter) => ({
    label: (report.runs.length > 1 ? run.name + ": " : "") + counter.name.replace("heap bytes", "heap"),
    pointRadius: 0, borderWidth: 2, stepped: true,
    data: counter.values.map(([ns, bytes]) => ({ x: seconds(ns), y: bytes / 1048576 })),
  })));
  lines.forEach((line, i) => { line.borderColor = line.backgroundColor = colour(i); });
  return [new Chart(byId("heap"), {
    type: "line",
    data: { datasets: lines },
    options: options(axis("seconds", { type: "linear", min: 0 }), axis("MiB held", { beginAtZero: true }), true),
  })];
}
