// Puts the page together.
"use strict";

function showLegend() {
  const legend = document.getElementById("legend");
  const entry = (name, background) => {
    const item = element("li");
    const box = element("i");
    box.style.background = background;
    item.append(box, name);
    legend.append(item);
  };
  entry("preprocessing", "var(--batch)");
  entry("wait", "var(--wait)");
  entry("step", "var(--step)");
  entry("out-of-order arrival", "var(--arrival)");
  const stretches = report.runs.flatMap((run) => run.timeline.tracks).flatMap((track) => track.off_cpu || []);
  const reasons = new Set(stretches.map(([, , reason]) => reason));
  reasonNames.forEach((name, i) => { if (reasons.has(i)) entry(name, "var(--" + reasonColours[i] + ")"); });
  report.op_names.forEach((name, i) => entry(name, colour(i)));
}

showVerdicts();
showOperations();
showAggregated();
showStages();
showAsync();
showLegend();
showHardware();

const timeline = new Timeline(document.getElementById("timeline"));
const choice = document.getElementById("run");
report.runs.forEach((run, i) => {
  const option = element("option", run.name);
  option.value = i;
  choice.append(option);
});
document.getElementById("run-choice").hidden = report.runs.length < 2;

function showRun() {
  const run = report.runs[Number(choice.value)];
  document.getElementById("timeline-note").textContent = run.timeline.note;
  timeline.show(run);
}

choice.addEventListener("change", showRun);
document.getElementById("zoom-in").addEventListener("click", () => timeline.zoom(0.5, 0.5));
document.getElementById("zoom-out").addEventListener("click", () => timeline.zoom(2, 0.5));
document.getElementById("zoom-all").addEventListener("click", () => timeline.all());
window.addEventListener("resize", () => timeline.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  timeline.draw();
  drawCharts();
});
showRun();
drawCharts();
