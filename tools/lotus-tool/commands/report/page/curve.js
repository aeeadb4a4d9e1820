// Draws how fast the run would be: the throughput over the number of workers or another setting, with a slider for each
// of the operations that matter most. All of it was simulated when the report was written.
"use strict";

function folderName(dir) { return dir.replace(/\/+$/, "").split("/").pop() || dir; }

/** Returns the next number with one digit and zeros, or half of it, so that an axis can end there. */
function roundAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((round) => round >= value) || value;
}

/** Returns "1 worker", "2 workers" or "Decode 2x as fast". */
function countText(curve, at) {
  if (curve.axis === "speed") return curve.of + " " + threeDigits(at) + "x as fast";
  return threeDigits(at) + " " + (at === 1 ? curve.title.replace(/s\b/, "") : curve.title);
}

/** The curve of one run, with what the user chose. */
class SpeedCurve {
  constructor() {
    this.chart = undefined;
    this.at = 0;  // index of the point that the keys select
    this.chosen = [];  // for each slider, the index of its speed
    const canvas = byId("curve");
    canvas.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by || !this.curve) return;
      event.preventDefault();
      this.at = Math.min(Math.max(this.at + by, 0), this.curve.points.length - 1);
      this.tell(this.at);
    });
    fillChoice("curve-axis", [], () => this.choose(Number(byId("curve-axis").value)));
  }

  /** Shows a run's curves, or why there are none. */
  show(run) {
    this.run = run;
    const axes = run.curves.axes || [];
    this.curve = undefined;
    byId("curve-part").hidden = !run.verdict || !run.verdict.run_ns;
    byId("curve-title").textContent = "How fast would it be?" + (report.runs.length > 1 ? " (" + run.name + ")" : "");
    byId("curve-why").hidden = axes.length > 0;
    byId("curve-why").textContent = "Nothing is predicted for this run: " + (run.curves.why_not || "no setting can be changed") + ".";
    byId("curve-shown").hidden = !axes.length;
    if (!axes.length) return;
    byId("curve-axis").replaceChildren(...axes.map((axisOf, i) => new Option(axisOf.title, String(i))));
    this.chosen = run.curves.sliders.map(() => 0);
    byId("curve-sliders").replaceChildren(...run.curves.sliders.map((slider, i) => this.sliderOf(slider, i)));
    this.choose(0);
  }

  sliderOf(slider, number) {
    const label = element("label", slider.name + " ");
    const value = element("output", "as it is");
    const input = element("input");
    input.type = "range";
    input.min = "0";
    input.max = String(slider.steps.length - 1);
    input.value = "0";
    input.addEventListener("input", () => {
      this.chosen[number] = Number(input.value);
      const { speed } = slider.steps[this.chosen[number]];
      value.textContent = speed === 1 ? "as it is" : speed + "× faster";
      input.setAttribute("aria-valuetext", value.textContent);
      this.draw();
      this.tell(this.at);
    });
    input.setAttribute("aria-valuetext", "as it is");
    label.append(input, " ", value);
    return label;
  }

  choose(number) {
    this.number = number;
    this.curve = this.run.curves.axes[number];
    const own = this.curve.measured.find((dot) => dot.recorded);
    this.at = Math.max(this.curve.points.findIndex((point) => own && point.at === own.at), 0);
    this.draw();
    this.tell(this.at);
  }

  /** Returns the throughput of each point with the chosen speeds: at, per_s, low, high. With sliders, the interval combines
   * that of the point with those of the faster operations. */
  points() {
    const { sliders } = this.run.curves;
    let combination = 0;
    for (let i = sliders.length - 1; i >= 0; --i) combination = combination * sliders[i].steps.length + this.chosen[i];
    const rates = this.curve.rates[combination];
    const moved = sliders.filter((_, i) => this.chosen[i] > 0);
    const wide = (end, of) => Math.hypot(Math.log(of[end] / of.batches_per_s), ...moved.map((slider) => Math.log(slider[end])));
    return this.curve.points.map((of, i) => ({ at: of.at, per_s: rates[i],
      low: of.low > 0 ? rates[i] * Math.exp(-wide("low", of)) : 0, high: rates[i] * Math.exp(wide("high", of)) }));
  }

  /** Returns the sentence about a point, as whatif says it, and below it the command that says more. */
  sentence(i) {
    const p = this.points()[i];
    const parts = [this.curve.points[i].change, ...this.run.curves.sliders.map((slider, s) => slider.steps[this.chosen[s]].text)];
    const changes = parts.filter((text) => text && text !== "as recorded").join(", ");
    const gain = p.per_s / this.run.verdict.achieved_batches_per_s;
    return (changes || countText(this.curve, p.at) + ", as recorded") + ": " + batchesPerSecond(p.per_s) +
      " (90 % interval " + threeDigits(p.low) + " to " + threeDigits(p.high) + "), " + threeDigits(gain) + "× as fast";
  }

  dotText(dot) {
    const point = this.curve.points.findIndex((of) => of.at === dot.at);
    const predicted = dot.recorded || point < 0 ? "" : " (predicted " + threeDigits(this.curve.points[point].batches_per_s) + ")";
    return folderName(dot.dir) + ": " + countText(this.curve, dot.at) + ", " + batchesPerSecond(dot.batches_per_s) + predicted;
  }

  tell(i) { byId("curve-sentence").textContent = this.sentence(i) + "."; }

  draw() {
    if (this.chart) this.chart.destroy();
    if (!this.curve) return;
    const points = this.points();
    const dots = this.curve.measured;
    const most = Math.max(...points.map((p) => p.per_s), ...dots.map((dot) => dot.batches_per_s));
    const accent = cssColour("accent");
    const xs = points.map((p) => p.at);
    const [first, last] = [xs[0], xs[xs.length - 1]];
    const line = (label, key, extra) => Object.assign({ label, data: points.map((p) => ({ x: p.at, y: p[key] })), pointRadius: 0, borderWidth: 0 }, extra);
    const limits = (this.curve.limits || []).filter((limit) => limit.batches_per_s < 1.3 * most).map((limit) => ({
      label: "limit: " + limit.name + ", " + threeDigits(limit.batches_per_s) + "/s", pointRadius: 0, pointHitRadius: 0, borderDash: [6, 4],
      borderWidth: 1.5, borderColor: cssColour("step"), backgroundColor: cssColour("step"),
      data: [{ x: first, y: limit.batches_per_s }, { x: last, y: limit.batches_per_s }] }));
    const dotSet = (label, shown, fill, pointStyle) => ({ label, showLine: false, pointRadius: 6, pointHoverRadius: 8, pointStyle, borderColor: cssColour("page"),
      backgroundColor: fill, data: shown.map((dot) => ({ x: dot.at, y: dot.batches_per_s, dot })) });
    const others = dots.filter((dot) => !dot.recorded);
    const settings = options(axis(this.curve.title, { type: "linear", min: first, max: last,
      ticks: { color: cssColour("quiet"), callback: (value) => Number.isInteger(value) ? value : "" } }),
    axis("batches/s", { type: "linear", min: 0, max: roundAbove(1.2 * most) }), true);
    Object.assign(settings.plugins.legend.labels, { usePointStyle: true, boxHeight: 8, filter: (item) => item.text !== "" });
    settings.plugins.tooltip = { displayColors: false, callbacks: { title: () => "",
      label: (item) => item.raw.dot ? this.dotText(item.raw.dot) : item.dataset.label === "predicted" ? this.sentence(item.dataIndex).split(": ") : undefined },
    filter: (item) => item.raw.dot || item.dataset.label === "predicted" };
    settings.clip = 8;
    this.chart = new Chart(byId("curve"), { type: "line", options: settings, data: { datasets: [
      dotSet("this run", dots.filter((dot) => dot.recorded), cssColour("ink"), "rectRot"),
      ...(others.length ? [dotSet("other runs, measured", others, cssColour("arrival"), "circle")] : []),
      line("predicted", "per_s", { borderColor: accent, backgroundColor: accent, borderWidth: 2.5, pointRadius: 2.5, pointHitRadius: 12, pointStyle: "line" }),
      line("", "low", {}), line("90 % interval", "high", { fill: "-1", backgroundColor: accent + "2e", pointStyle: "rect" }),
      ...limits.map((limit) => Object.assign(limit, { pointStyle: "line" }))] } });
    byId("curve").setAttribute("aria-label", "Predicted batches per second over " + this.curve.title + "; the keys left and right go from point to point. " +
      dots.map((dot) => this.dotText(dot)).join("; "));
    const note = this.curve.note || "";
    byId("curve-note").textContent = note;
    byId("curve-note").hidden = !note;
  }
}

/** Returns what was predicted for the second run of a comparison, from the first one alone; undefined if nothing was. */
function predictedForSecond({ before }) {
  for (const curve of before.curves.axes || []) {
    const dot = curve.measured.find((of) => of.named);
    const point = dot && curve.points.find((of) => of.at === dot.at);
    const base = curve.measured.find((of) => of.recorded);
    if (point && point.at !== base.at) return { at: countText(curve, point.at), per_s: point.batches_per_s, low: point.low, high: point.high };
  }
  return undefined;
}
