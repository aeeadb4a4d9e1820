// Colours: one for each operation by its name, on every page; what they mean never hangs on hue alone.
"use strict";

// Apart from each other for people who see no red or no green too; tests/tool/report checks it.
const palette = ["#4145ab", "#dfdb4c", "#089772", "#aaa1f6", "#755e6f", "#90d58f", "#63367c", "#8b91ab",
  "#0d7c1c", "#7986f2", "#a7a78a", "#4a6cb4"];

let cssColours = new Map();

/** A colour of the style sheet, by its name there. */
function cssColour(name) {
  if (!cssColours.has(name)) {
    cssColours.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  }
  return cssColours.get(name);
}

/** FNV-1a of 32 bits (Fowler, Noll, Vo). */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** By name; where two names want one colour, the later one in the alphabet takes the next that is free. */
function giveColours(names) {
  const given = new Map();
  const taken = new Set();
  for (const name of [...new Set(names)].sort()) {
    let place = hashOf(name) % palette.length;
    for (let n = 0; n < palette.length && taken.has(place); ++n) place = (place + 1) % palette.length;
    if (taken.size < palette.length) taken.add(place);
    given.set(name, palette[place]);
  }
  return given;
}

const operationColours = giveColours(report.op_names.map(shownName));

/** @param name without S */
function operationColour(name) { return operationColours.get(name) || palette[hashOf(name) % palette.length]; }

/** Of what has no name of an operation: runs, functions. */
function colour(i) { return palette[i % palette.length]; }

/** WCAG 2.2, relative luminance. */
function luminance(hex) {
  const part = (at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Black or white, whichever is read better: at least 4.5 to 1 on any colour. */
function textOn(hex) { return luminance(hex) > 0.179 ? "#000000" : "#ffffff"; }
