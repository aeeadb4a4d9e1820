// Gives every operation name a color, which is the same on every page. Nothing is distinguished by the hue alone.
"use strict";

// People who cannot see red or green can distinguish these colors too (tests/tool/report checks this). There are no
// more than twelve such colors, so further operations get the same colors with lines or dots.
const palette = ["#4145ab", "#dfdb4c", "#089772", "#aaa1f6", "#755e6f", "#90d58f", "#63367c", "#8b91ab",
  "#0d7c1c", "#7986f2", "#a7a78a", "#4a6cb4"];

let cssColours = new Map();

/** Returns the color that page.css defines under this name. */
function cssColour(name) {
  if (!cssColours.has(name)) {
    cssColours.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  }
  return cssColours.get(name);
}

/** Returns the 32-bit FNV-1a hash of a text (Fowler, Noll, Vo). */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

const looks = 4 * palette.length;  // each color, plain and with each of the three patterns in patterns.js

/** Gives every name a look: a number below `looks` that stands for a color and a pattern. If two names would get the
 * same look, the later in the alphabet gets the next free one, preferably one without a pattern. Names look the same
 * only if there are more names than looks. */
function giveLooks(names) {
  const given = new Map();
  const taken = new Set();
  for (const name of [...new Set(names)].sort()) {
    const own = hashOf(name) % palette.length;
    const nth = (n) => n - n % palette.length + (own + n) % palette.length;
    let n = 0;
    while (n < looks && taken.has(nth(n))) ++n;
    const look = n < looks ? nth(n) : hashOf(name) % looks;
    taken.add(look);
    given.set(name, look);
  }
  return given;
}

const operationLooks = giveLooks(report.op_names.map(shownName));

/** Returns the look of an operation, see giveLooks(). @param name without the S that it has in logs */
function operationLook(name) {
  const look = operationLooks.get(name);
  return look === undefined ? hashOf(name) % palette.length : look;
}

function operationColour(name) { return palette[operationLook(name) % palette.length]; }

/** Returns the number of an operation's pattern; 0 means no pattern. */
function operationPattern(name) { return Math.floor(operationLook(name) / palette.length); }

/** Returns a color for something other than an operation, such as a run or a function. */
function colour(i) { return palette[i % palette.length]; }

/** Returns the relative luminance that WCAG 2.2 defines. */
function luminance(hex) {
  const part = (at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Returns black or white, whichever is easier to read on a color. The contrast is at least 4.5 to 1. */
function textOn(hex) { return luminance(hex) > 0.179 ? "#000000" : "#ffffff"; }
