// Colors: one per operation name, the same on every page; no meaning depends on the hue alone.
"use strict";

// Colors that people who cannot see red or green can distinguish too; tests/tool/report checks it. More than
// twelve cannot be that different, so further operations get the same colors with lines or dots over them.
const palette = ["#4145ab", "#dfdb4c", "#089772", "#aaa1f6", "#755e6f", "#90d58f", "#63367c", "#8b91ab",
  "#0d7c1c", "#7986f2", "#a7a78a", "#4a6cb4"];

let cssColours = new Map();

/** A color of the style sheet by its name there. */
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

const looks = 4 * palette.length;  // each color plain and with each of the three patterns in patterns.js

/** Gives every name a number below `looks`. If two names want the same one, the later in the alphabet gets the next
 * free one, preferably a plain one. Two names look alike only if there are more names than looks. */
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

/** @param name without S */
function operationLook(name) {
  const look = operationLooks.get(name);
  return look === undefined ? hashOf(name) % palette.length : look;
}

function operationColour(name) { return palette[operationLook(name) % palette.length]; }

/** 0: plain. */
function operationPattern(name) { return Math.floor(operationLook(name) / palette.length); }

/** A color for what is not an operation: runs, functions. */
function colour(i) { return palette[i % palette.length]; }

/** WCAG 2.2, relative luminance. */
function luminance(hex) {
  const part = (at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Black or white, whichever is easier to read: the contrast is at least 4.5 to 1 on any color. */
function textOn(hex) { return luminance(hex) > 0.179 ? "#000000" : "#ffffff"; }
