// Draws a histogram of the durations of an operation. The user can drag over bars to select durations; the timeline
// then highlights only these, and the axis can zoom to them.
"use strict";

// The bins are the same as in report_run.cpp, which counts the durations. Each bar is one or several bins.
const binsADecade = 48;
const allBins = 10 * binsADecade;
const firstEdge = 100;  // ns; the first bin also contains shorter durations
const barWidths = [1, 3, 6, 12, 24, 48];

/** Returns the lower end of a bin in ns. */
function binEdge(bin) { return firstEdge * 10 ** (bin / binsADecade); }

/** Returns the bin of a duration, plus the position of the duration within the bin (0 to 1). */
function placeOfDuration(ns) { return binsADecade * Math.log10(Math.max(ns, 1) / firstEdge); }

function barsBetween(histogram, low, high, wide) {
  const bars = [];
  for (let from = low; from < high; from += wide) {
    let count = 0;
    for (let bin = from; bin < from + wide; ++bin) count += histogram.counts[bin - histogram.first] || 0;
    bars.push(count);
  }
  return bars;
}

/** Returns bars over all possible durations. Each bar is half a decade wide, which is a factor of about 3. */
function halfDecades(histogram) { return barsBetween(histogram, 0, allBins, binsADecade / 2); }

/** Returns the range from the first to the last bin that is not empty; it is at least half a decade. */
function wholeAxis({ first, counts }) {
  const around = Math.max(0, Math.ceil((binsADecade / 2 - counts.length) / 2));
  return [Math.max(first - around, 0), Math.min(first + counts.length + around, allBins)];
}

/** Returns how to draw the bins in [low, high) with at most `most` bars: {low, high, wide}. A bar is `wide` bins wide. */
function fitBars(low, high, most) {
  for (const wide of barWidths) {
    const [from, to] = [Math.floor(low / wide) * wide, Math.min(Math.ceil(high / wide) * wide, allBins)];
    if ((to - from) / wide <= most) return { low: from, high: to, wide };
  }
  return { low: 0, high: allBins, wide: binsADecade };
}

/** Returns round durations for the labels of an axis, as [position from 0 to 1, ns]. Their distance is at least the
 * share `apart` of the axis. */
function roundDurations({ low, high }, apart) {
  let best = [];
  for (const mantissas of [[1], [1, 3], [1, 2, 5], ...[1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01].map((step) =>
    Array.from({ length: Math.round(9 / step) }, (_, n) => 1 + n * step))]) {
    const ticks = [];
    for (let decade = Math.floor(low / binsADecade); decade <= high / binsADecade; ++decade) {
      for (const mantissa of mantissas) {
        const ns = mantissa * firstEdge * 10 ** decade;
        const place = (placeOfDuration(ns) - low) / (high - low);
        if (place > -1e-9 && place < 1 + 1e-9) ticks.push([place, ns]);
      }
    }
    if (ticks.some(([place], i) => i && place - ticks[i - 1][0] < apart)) break;
    best = ticks;
  }
  return best;
}

/** Lets the user select bars by dragging over them. @param {(x: number) => number} barAt @param {any} band is called
 * with the first and the last bar while the user drags @param act is called with both bars at the end */
function listenToBrush(svg, barAt, band, act) {
  let from = undefined;  // the event that started the dragging
  let far = false;
  const bars = (event) => [barAt(from.clientX), barAt(event.clientX)].sort((a, b) => a - b);
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { from = event; far = false; } });
  svg.addEventListener("pointermove", (event) => {
    if (!from) return;
    if (!far && Math.abs(event.clientX - from.clientX) >= leastDrag) {
      far = true;
      if (event.isTrusted) svg.setPointerCapture(event.pointerId);  // the dragging must end even if the button is released outside
    }
    if (far) band(...bars(event));
  });
  svg.addEventListener("pointerup", (event) => {
    const range = from && far ? bars(event) : undefined;
    from = undefined;
    if (range) act(...range);
  });
  svg.addEventListener("pointercancel", () => { from = undefined; band(); });
}

/** Returns the elements of a histogram. @param {any} histogram {first, counts} @param {any} shown {marked: duration of
 * the selected call in ns, took: selected bins, axis: visible bins, room: width in pixels} @param {any} actions
 * functions that are called when the user selects bins, choose(took), or other visible bins, look(axis) */
function histogramParts(histogram, fill, shown, actions) {
  const { took, marked, room } = shown;
  const [first, last] = shown.axis || wholeAxis(histogram);
  const axis = fitBars(first, last, Math.max(4, Math.floor(room / 34)));
  const { low, high, wide } = axis;
  const bars = barsBetween(histogram, low, high, wide);
  const [barWide, tall] = [room / bars.length, 90];
  const foot = tall + 14;
  const xOf = (bin) => (bin - low) / wide * barWide;
  const svg = svgElement("svg", { viewBox: "0 0 " + room + " " + (foot + 26), class: "histogram", role: "group",
    "aria-label": "How many calls took how long" });
  const band = svgElement("rect", { class: "brush", y: 0, height: foot, width: 0 });
  const choose = (from, to) => actions.choose([low + from * wide, low + (to + 1) * wide]);
  const press = (bar, further) => {
    if (further && took) actions.choose([Math.min(took[0], low + bar * wide), Math.max(took[1], low + (bar + 1) * wide)]);
    else choose(bar, bar);
  };
  const most = Math.max(...bars, 1);
  const full = [];  // the bars that the user can press
  bars.forEach((count, bar) => {
    if (!count) return;
    const from = low + bar * wide;
    const x = bar * barWide;
    const height = Math.max(2, tall * Math.sqrt(count / most));
    const text = grouped(count) + " took " + humanTime(binEdge(from)) + " to " + humanTime(binEdge(from + wide));
    const chosen = !took || from + wide > took[0] && from < took[1];
    const place = marked === undefined ? -1 : placeOfDuration(marked);
    svg.append(svgElement("rect", { x: x + 1, y: foot - height, width: Math.max(barWide - 2, 1), height, fill,
      opacity: chosen ? 1 : 0.35, stroke: place >= from && place < from + wide ? "currentColor" : "none", "stroke-width": 2 }));
    const number = svgElement("text", { x: x + barWide / 2, y: foot - height - 4, "text-anchor": "middle" });
    number.textContent = Number(count).toLocaleString("en", { notation: "compact" });
    const over = svgElement("rect", { x, y: 0, width: barWide, height: foot, fill: "transparent", role: "button",
      tabindex: full.length ? -1 : 0, "data-key": "bar" + from, "aria-label": text + ": highlight them", "aria-pressed": String(!!took && chosen) });
    const tip = svgElement("title", {});
    tip.textContent = text;
    over.append(tip);
    over.addEventListener("click", (event) => press(bar, event.shiftKey));
    over.addEventListener("keydown", (event) => {
      const next = full[full.indexOf(over) + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : NaN)];
      if (next) next.focus();
      else if (event.key === "Enter" || event.key === " ") press(bar, event.shiftKey);
      else return;
      event.preventDefault();
    });
    full.push(over);
    svg.append(number, over);
  });
  for (const [place, ns] of roundDurations(axis, 58 / room)) {
    const x = place * room;
    const label = svgElement("text", { x, y: foot + 22, "text-anchor": place < 0.04 ? "start" : place > 0.96 ? "end" : "middle" });
    label.textContent = humanTime(Number(ns.toPrecision(4)));
    svg.append(svgElement("path", { d: "M" + x + " " + foot + "v6", stroke: "currentColor" }), label);
  }
  if (took) {
    const [from, to] = took.map((bin) => Math.min(Math.max(xOf(bin), 0), room));
    svg.append(svgElement("rect", { class: "taken", x: from, y: foot, width: Math.max(to - from, 0), height: 4 }));
  }
  svg.append(band);
  listenToBrush(svg, (x) => {
    const box = svg.getBoundingClientRect();
    return Math.min(Math.max(Math.floor((x - box.left) / box.width * bars.length), 0), bars.length - 1);
  }, (from, to) => {
    band.setAttribute("x", String((from || 0) * barWide));
    band.setAttribute("width", String(from === undefined ? 0 : (to - from + 1) * barWide));
  }, choose);
  const buttons = element("p", undefined, "bar");
  const zooms = took && took[1] - took[0] > 1 && (took[0] > low || took[1] < high);
  const axisButton = (text, to) => {
    const button = linkTo(text, () => actions.look(to));
    button.dataset.key = "axis";
    buttons.append(button);
  };
  if (zooms) axisButton("zoom the axis to them", took);
  if (shown.axis) axisButton("whole axis", undefined);
  if (took) buttons.append(linkTo("all durations", () => actions.choose(undefined)));
  return [svg, buttons, element("p", took ? "Highlighted above: calls that took " + humanTime(binEdge(took[0])) + " to " +
    humanTime(binEdge(took[1])) + "." : "Drag over bars to highlight only these calls in the timeline, or press one bar and, with Shift, another. " +
    "The height of a bar is the square root of the count, so that rare durations stay visible.", "note")];
}
