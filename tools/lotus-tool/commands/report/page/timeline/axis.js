// Draws the time axis: ticks at round numbers, and their labels.
"use strict";

/** Returns the distance between ticks, which is at least `least` and 1, 2 or 5 times a power of ten. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least * (1 - 1e-9)) || 10 * power;
}

/** Returns the ticks from `from` to `to`, at least `apart` pixels apart on an axis that is `width` pixels wide. */
function ticksOf(from, to, width, apart) {
  const step = Math.max(roundStep((to - from) * apart / Math.max(width, 1)), 1);
  const ticks = [];
  for (let n = Math.ceil(from / step); n * step <= to && ticks.length < 200; ++n) ticks.push(n * step);
  return { step, ticks };
}

/** Formats a time. The unit suits `last`, the end of the axis. The digits suffice to distinguish the time from the next
 * tick. */
function tickText(at, step, last) {
  const units = /** @type {[number, string][]} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  const [size, unit] = units.find(([ns]) => last >= ns) || units[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  return (at / size).toFixed(digits) + " " + unit;
}

/** Draws a line through all lanes at each tick, the time of the tick above it, and the width of the visible range. */
function drawAxis(c, view, height) {
  const { step, ticks } = ticksOf(view.from, view.to, view.plot, 110);
  c.font = "11px system-ui, sans-serif";
  c.textAlign = "center";
  for (const at of ticks) {
    const x = Math.round(view.x(at)) + 0.5;
    c.fillStyle = cssColour("line");
    c.fillRect(x - 0.5, axisHeight - 6, 1, height);
    c.fillStyle = cssColour("quiet");
    const text = tickText(at, step, view.to);
    const half = c.measureText(text).width / 2;
    if (x - half >= view.left && x + half <= view.width) c.fillText(text, x, 13);
  }
  c.textAlign = "left";
}
