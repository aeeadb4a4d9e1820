// The heap over time, and what stays behind with every batch.
"use strict";

function humanBytes(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = bytes;
  let unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return Number(value.toPrecision(4)) + " " + units[unit];
}

const heapCounters = (run) => (run.timeline.counters || []).filter((counter) => /^heap bytes(, pid |$)/.test(counter.name));

function showLeaks() {
  const list = document.getElementById("leaks");
  for (const run of report.runs) {
    for (const text of run.leaks) list.append(element("li", (report.runs.length > 1 ? run.name + ": " : "") + text));
  }
  document.getElementById("memory-part").hidden = !report.runs.some((run) => heapCounters(run).length);
}

function heapChart() {
  if (document.getElementById("memory-part").hidden) return [];
  const lines = report.runs.flatMap((run) => heapCounters(run).map((counter) => ({
    label: (report.runs.length > 1 ? run.name + ": " : "") + counter.name.replace("heap bytes", "heap"),
    pointRadius: 0, borderWidth: 2, stepped: true,
    data: counter.values.map(([ns, bytes]) => ({ x: seconds(ns), y: bytes / 1048576 })),
  })));
  lines.forEach((line, i) => { line.borderColor = line.backgroundColor = colour(i); });
  return [new Chart(document.getElementById("heap"), {
    type: "line",
    data: { datasets: lines },
    options: options(axis("seconds", { type: "linear", min: 0 }), axis("MiB held", { beginAtZero: true }), true),
  })];
}
